//! The JSON of an activated device in responses.

use foldwork_engine::model::date::format_date;
use foldwork_engine::model::license::Activation;
use poem_openapi::Object;
use serde::Serialize;

/// An activated or revoked device.
#[derive(Object, Serialize)]
#[oai(rename = "Activation")]
pub struct ActivationBody {
    id: String,
    /// The id that the device chose.
    instance_id: String,
    name: Option<String>,
    platform: Option<String>,
    app_version: Option<String>,
    created: String,
    activated_at: String,
    last_validated_at: String,
    revoked_at: Option<String>,
}

impl From<&Activation> for ActivationBody {
    fn from(activation: &Activation) -> ActivationBody {
        ActivationBody {
            id: activation.id.to_string(),
            instance_id: activation.instance_id.clone(),
            name: activation.name.clone(),
            platform: activation.platform.clone(),
            app_version: activation.app_version.clone(),
            created: format_date(activation.activated_at),
            activated_at: format_date(activation.activated_at),
            last_validated_at: format_date(activation.last_validated_at),
            revoked_at: activation.revoked_at.map(format_date),
        }
    }
}
