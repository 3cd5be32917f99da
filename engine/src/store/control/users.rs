//! Users in the control database, with their names, addresses and plans.

use surrealdb::types::Value as Record;

use crate::model::access::UserRecord;
use crate::model::plan::{PlanLimits, PlanStatus, UserPlan};
use crate::store::record::{StoredRecord, field_value, stored_record};
use crate::store::{Database, Error, Result, convert};

stored_record!(UserRecord as "user" [id] { email, email_verified, name, plan });
stored_record!(PlanLimits [] { storage_bytes, projects, agents, activations });
field_value!(
    Option<UserPlan>,
    |record, field| {
        let plan = convert::field(record, field).ok().filter(|plan| matches!(plan, Record::Object(_)));
        plan.map(read_plan).transpose()
    },
    |plan| plan.as_ref().map_or(Record::None, plan_content)
);

/// The fields of a stored plan.
const PLAN_FIELDS: [&str; 8] =
    ["id", "name", "status", "trial_ends_at", "storage_bytes", "projects", "agents", "activations"];

impl Database {
    /// Updates the name and email address of a user, and whether the address is verified. The issuer of the user's
    /// tokens reports these values.
    pub async fn write_user_about(&self, user: &UserRecord) -> Result<()> {
        let values = [
            ("id", convert::record_id("user", user.id.to_string())),
            ("email", convert::optional_text(user.email.as_deref())),
            ("verified", Record::Bool(user.email_verified)),
            ("name", convert::optional_text(user.name.as_deref())),
        ];
        let statement = "UPDATE $id SET email = $email, email_verified = $verified, name = $name RETURN NONE";
        self.query_again(statement, values).await.map(drop)
    }

    /// Changes the plan of a user, if the stored plan still equals `before`. Returns whether the plan was changed.
    pub async fn write_plan(&self, user_id: &str, before: Option<&UserPlan>, plan: &UserPlan) -> Result<bool> {
        let unchanged = PLAN_FIELDS.map(|field| format!("plan.{field} = $before.{field}")).join(" AND ");
        let values = [
            ("id", convert::record_id("user", user_id.to_owned())),
            ("before", before.map_or(Record::None, plan_content)),
            ("plan", plan_content(plan)),
        ];
        let statement = format!("UPDATE $id SET plan = $plan WHERE {unchanged} RETURN AFTER");
        convert::has_rows(&self.query_again(&statement, values).await?)
    }
}

fn plan_content(plan: &UserPlan) -> Record {
    let mut content = plan.limits.fields();
    content.extend(convert::fields([
        ("id", convert::text(&plan.id)),
        ("name", convert::text(&plan.name)),
        ("status", convert::text(plan.status.name())),
        ("trial_ends_at", plan.trial_ends_at.map_or(Record::None, convert::integer)),
    ]));
    Record::Object(content)
}

fn read_plan(record: &Record) -> Result<UserPlan> {
    let status = convert::text_field(record, "status")?;
    let unknown = || Error::corrupt(format!("the plan of the user has the unknown status '{status:.64}'"));
    Ok(UserPlan {
        id: convert::text_field(record, "id")?.to_owned(),
        name: convert::text_field(record, "name")?.to_owned(),
        status: PlanStatus::parse(status).ok_or_else(unknown)?,
        trial_ends_at: convert::optional_int_field(record, "trial_ends_at"),
        limits: PlanLimits::read(record)?,
    })
}
