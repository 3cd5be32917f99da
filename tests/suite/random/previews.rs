//! Tests previews: the rows that a preview shows after a stage are the rows that the pipeline returns if it ends with
//! this stage.

use foldwork_engine::Error;
use foldwork_engine::model::json;
use foldwork_engine::model::value::Value;
use foldwork_engine::workspace::query::Query;
use foldwork_tests::handles::Handles;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

/// The number of rows to show.
const SHOWN: usize = 3;

/// Checks that a preview of a pipeline returns the same rows as the pipeline. `returned` contains the rows of the
/// pipeline. Also checks the rows that the preview shows after each stage: they must be the first rows of the pipeline
/// that ends with this stage.
pub async fn compare(workspace: &Handles, pipeline: &Value, returned: &str) -> Result<(), TestCaseError> {
    let text = json::text(pipeline);
    let mut query = Query::new(pipeline.clone());
    query.preview = Some(SHOWN);
    let all = pipeline.as_array().unwrap_or_default();
    let answer = match workspace.reader.query(query).await {
        Ok(answer) => answer,
        Err(Error::Pipeline(error)) => return explain(workspace, all, &error.to_string()).await,
        Err(error) => return Err(TestCaseError::fail(format!("{text}: {error}"))),
    };
    prop_assert_eq!(lines(&answer.rows), returned, "the rows of a preview of {}", &text);
    // All stages of a query draw from one sequence of random numbers. A later stage that draws changes the numbers of an
    // earlier stage, because rows pass through the stages one by one.
    let drawing = all.iter().filter(|stage| json::text(stage).contains("$rand")).count();
    if text.contains("$sample") || drawing > 1 {
        return Ok(());
    }
    let stages = answer.stages.unwrap_or_default();
    prop_assert_eq!(stages.len(), all.len(), "the stages of {}", &text);
    for (number, stage) in stages.iter().enumerate() {
        prop_assert_eq!(stage.index, number, "the order of the stages of {}", &text);
        let Ok(ended) = workspace.reader.query(Query::new(all[..=number].to_vec().into())).await else { continue };
        prop_assert_eq!(stage.count, ended.rows.len() as u64, "the rows after stage {} of {}", number, &text);
        let first: Vec<Value> = ended.rows.into_iter().take(SHOWN).collect();
        prop_assert_eq!(lines(&stage.rows), lines(&first), "the first rows after stage {} of {}", number, &text);
    }
    Ok(())
}

/// Checks that a failed preview has a cause: the whole pipeline, or the part up to one of its stages, fails without a
/// preview as well. The whole pipeline can succeed although its preview fails, because a preview can read rows that the
/// whole pipeline does not need.
async fn explain(workspace: &Handles, stages: &[Value], failure: &str) -> Result<(), TestCaseError> {
    for end in (1..=stages.len()).rev() {
        if workspace.reader.query(Query::new(stages[..end].to_vec().into())).await.is_err() {
            return Ok(());
        }
    }
    let text = json::text(&Value::from(stages.to_vec()));
    Err(TestCaseError::fail(format!("only the preview of {text} fails: {failure}")))
}

fn lines(rows: &[Value]) -> String {
    rows.iter().map(|row| json::text(row) + "\n").collect()
}
