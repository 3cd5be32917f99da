//! Defines and redefines aggregate types, rejects breaking changes, and returns the schemas of types.

use std::sync::Arc;

use super::call_context::Operation;
use super::rights::{Reader, Writer};
use super::{Page, PageLimit};
use crate::append::appender::Appender;
use crate::error::{Error, ErrorCode, Result};
use crate::metric;
use crate::model::declaration;
use crate::model::definition::{Definition, Field};
use crate::model::json;
use crate::model::value::{Object, Value};
use crate::model::violation::Violations;
use crate::state::State;
use crate::state::redefine::RefoldedType;
use crate::state::types::Definitions;
use crate::store::retry::MayConflict;
use crate::store::{self, retry};

/// The maximum number of patterns in all types of a workspace together.
const MAX_PATTERNS: usize = 1_000;

/// A type and the observed shapes of its events.
pub struct TypeSchema {
    pub definition: Arc<Definition>,
    /// The event types observed in the log. The object of an event type maps the name of each observed payload field to
    /// the types of the field's values. The number of event types, the number of fields per event type and the
    /// length of field names are limited. Event types and fields over these limits are left out.
    pub observed: Vec<(String, Object)>,
}

/// A current or earlier definition of a type.
#[derive(Debug, Clone)]
pub struct DefinitionVersion {
    /// The position of the log's last event before the definition.
    pub position: u64,
    pub type_name: String,
    /// The declaration, in the form that clients send.
    pub declaration: Value,
}

/// The maximum number of definitions in one read of the store. A page of definitions may need several reads.
const DEFINITIONS: usize = 8;

/// The result of defining a type.
pub enum DefinitionOutcome {
    Created(Arc<Definition>),
    Changed(Arc<Definition>),
    /// The type already had this definition.
    Unchanged(Arc<Definition>),
}

impl Writer {
    /// Defines or redefines a type. Rejects a breaking redefinition unless `force` is set.
    pub async fn define_type(&self, body: &Value, force: bool) -> Result<DefinitionOutcome> {
        let (body, patterns) = (body.clone(), self.context.state().patterns.clone());
        let parsed = tokio::task::spawn_blocking(move || declaration::parse(&body, &patterns)).await;
        let definition = parsed.map_err(Error::internal)??;
        Operation::perform(self, move |operation| async move { operation.define(definition, force).await }).await
    }
}

impl Operation {
    async fn define(&self, definition: Definition, force: bool) -> Result<DefinitionOutcome> {
        // Refreshes from the store first, because another server may have defined a type to which the definition
        // refers.
        self.state().refresh().await?;
        check_builtin(self.state(), &definition)?;
        check_references(&self.state().types.all(), &definition)?;
        define(self.state(), self.appender(), definition, force).await
    }
}

/// Defines or redefines a type. Rejects a breaking redefinition unless `force` is set.
pub(super) async fn define(
    state: &State,
    appender: &Appender,
    definition: Definition,
    force: bool,
) -> Result<DefinitionOutcome> {
    let _one = state.types.defining.lock().await;
    let attempt = || async {
        state.refresh().await?;
        try_define(state, appender, definition.clone(), force).await
    };
    // A conflict means that another server has changed a type, or has written to the head of the log at the same time.
    // The next attempt takes a changed type into account.
    if state.is_exclusive() { attempt().await } else { retry::after_conflicts(attempt).await }
}

async fn try_define(
    state: &State,
    appender: &Appender,
    mut definition: Definition,
    force: bool,
) -> Result<DefinitionOutcome> {
    if state.is_exclusive() {
        // Reads the number of changes again, because an earlier write with an unknown outcome may have stored a
        // definition.
        state.types.set_changed(state.db.types_changed().await?);
    }
    let types_changed = state.types.changed();
    check_patterns(&state.types.all(), &definition)?;
    let Some(before) = state.types.get(&definition.type_name) else {
        let definition = Arc::new(definition);
        put(appender, RefoldedType::under(definition.clone()), types_changed).await?;
        return Ok(DefinitionOutcome::Created(definition));
    };
    if before.managed {
        return Err(managed(&before));
    }
    definition.builtin = before.builtin;
    definition.revision = before.revision;
    if *before == definition {
        return Ok(DefinitionOutcome::Unchanged(before));
    }
    let breaks = before.breaking_changes(&definition);
    if !breaks.is_empty() && !force {
        return Err(breaking(&breaks));
    }
    let refold = !before.folds_like(&definition);
    if refold {
        definition.revision += 1;
    }
    let definition = Arc::new(definition);
    // Folds new states while the old states stay in use. The appender then adds only the changes made during the
    // folding.
    let refolded =
        if refold { state.fold_separately(&definition).await? } else { RefoldedType::under(definition.clone()) };
    put(appender, refolded, types_changed).await?;
    Ok(DefinitionOutcome::Changed(definition))
}

/// Writes a definition. The write fails, and is counted as a conflict, if another server has changed a type since
/// `types_changed` was read, or if another server writes to the head of the log at the same time.
async fn put(appender: &Appender, refolded: RefoldedType, types_changed: u64) -> Result<()> {
    let defined = appender.define(refolded, types_changed).await;
    if defined.as_ref().is_err_and(MayConflict::is_conflict) {
        metric::CONFLICTS.add(&["definition"], 1);
    }
    defined
}

impl Reader {
    /// Returns all types, sorted by name.
    pub async fn list_types(&self) -> Result<Vec<Arc<Definition>>> {
        self.context.refresh().await?;
        let mut definitions: Vec<_> = self.context.state().types.all().values().cloned().collect();
        definitions.sort_by(|a, b| a.type_name.cmp(&b.type_name));
        Ok(definitions)
    }

    /// Returns a page of the current and earlier definitions of types, oldest first. The cursor of a page is the number
    /// of definitions before the page.
    pub async fn past_definitions(&self, start: u64, limit: PageLimit) -> Result<Page<DefinitionVersion>> {
        let state = self.context.state();
        let (mut items, mut bytes): (Vec<DefinitionVersion>, usize) = (Vec::new(), 0);
        loop {
            let place = usize::try_from(start).unwrap_or(usize::MAX).saturating_add(items.len());
            let read = past_definitions(state, place, DEFINITIONS).await?;
            if read.is_empty() {
                return Ok(Page { items, next: None });
            }
            for past in read {
                bytes = bytes.saturating_add(past.declaration.size_bytes());
                if !items.is_empty() && (items.len() >= limit.rows || bytes > limit.bytes) {
                    let next = start.saturating_add(items.len() as u64);
                    return Ok(Page { items, next: Some(next) });
                }
                items.push(past);
            }
        }
    }

    /// Returns the definition of a type, and the observed shapes of the type's events.
    pub async fn schema(&self, type_name: &str) -> Result<TypeSchema> {
        let state = self.context.state();
        self.context.refresh().await?;
        let definition = state.types.get(type_name).ok_or_else(|| Error::not_found("aggregate type", type_name))?;
        Ok(TypeSchema { observed: state.folded.observed.of_type(&definition.type_name), definition })
    }
}

/// Returns up to `limit` definitions from the history of a workspace's types, oldest first. Skips the first `start`
/// definitions.
pub(super) async fn past_definitions(state: &State, start: usize, limit: usize) -> Result<Vec<DefinitionVersion>> {
    let past = state.db.read_defined(start, limit).await?;
    let read = past.into_iter().map(|past| {
        let declaration = json::parse_stored(past.text.as_bytes());
        let declaration = declaration.map_err(|error| store::Error::corrupt(error.to_string()))?;
        Ok(DefinitionVersion { position: past.position, type_name: past.type_name, declaration })
    });
    read.collect()
}

/// Rejects a redefinition of a managed or built-in type, because the program relies on the fields and traits of these
/// types.
fn check_builtin(state: &State, definition: &Definition) -> Result<()> {
    match state.types.get(&definition.type_name) {
        Some(before) if before.managed => Err(managed(&before)),
        Some(before) if before.builtin => {
            let message = format!("the type '{}' is built in and cannot be redefined", before.type_name);
            Err(Error::Forbidden { code: ErrorCode::BuiltinType, message })
        }
        _ => Ok(()),
    }
}

fn managed(definition: &Definition) -> Error {
    let message = format!("the type '{}' is managed and cannot be redefined", definition.type_name);
    Error::Forbidden { code: ErrorCode::ManagedType, message }
}

/// Rejects a definition with a reference to a type that does not exist.
fn check_references(types: &Definitions, definition: &Definition) -> Result<()> {
    let is_known = |name: &str| *name == *definition.type_name || types.contains_key(name);
    let mut wrong = Violations::default();
    for (index, field) in definition.fields().iter().enumerate() {
        add_unknown_targets(field, &format!("/fields/{index}"), &is_known, &mut wrong);
    }
    Ok(wrong.finish(())?)
}

fn add_unknown_targets(field: &Field, at: &str, is_known: &dyn Fn(&str) -> bool, wrong: &mut Violations) {
    if let Some(name) = field.reference_type.as_deref().filter(|name| !is_known(name)) {
        wrong.add(format!("{at}/reference_type"), format!("unknown aggregate type '{name}'"));
    }
    if let Some(items) = field.items.as_deref() {
        add_unknown_targets(items, &format!("{at}/items"), is_known, wrong);
    }
    for (index, inner) in field.fields.iter().enumerate() {
        add_unknown_targets(inner, &format!("{at}/fields/{index}"), is_known, wrong);
    }
}

/// Rejects a definition that would give the workspace too many patterns.
fn check_patterns(types: &Definitions, definition: &Definition) -> Result<()> {
    let others = types.values().filter(|known| known.type_name != definition.type_name);
    let count = |definition: &Definition| definition.fields().iter().map(Field::patterns).sum::<usize>();
    let before: usize = others.map(|known| count(known)).sum();
    if count(definition) > 0 && before + count(definition) > MAX_PATTERNS {
        let message = format!(
            "the type has {} patterns and the other types have {before}; expected at most {MAX_PATTERNS} in all types",
            count(definition)
        );
        return Err(Error::invalid_at("/fields", message));
    }
    Ok(())
}

fn breaking(breaks: &[String]) -> Error {
    let differences: Vec<Value> = breaks.iter().map(|text| Value::from(text.as_str())).collect();
    let message = format!("the redefinition has breaking changes: {}", breaks.join("; "));
    Error::conflict(ErrorCode::BreakingRedefinition, message).with_detail("differences", differences)
}
