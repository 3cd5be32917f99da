//! The JSON of an activated device in responses.

use foldwork_engine::model::date::format_date;
use foldwork_engine::model::license::Activation;

use super::shown::shown;

shown! {
    /// An activated or revoked device.
    #[oai(rename = "Activation")]
    pub struct ActivationBody from activation: &Activation;

    id: String = activation.id.to_string(),
    /// The id that the device chose.
    instance_id: String = activation.instance_id.clone(),
    name: Option<String> = activation.name.clone(),
    platform: Option<String> = activation.platform.clone(),
    app_version: Option<String> = activation.app_version.clone(),
    created: String = format_date(activation.activated_at),
    activated_at: String = format_date(activation.activated_at),
    last_validated_at: String = format_date(activation.last_validated_at),
    revoked_at: Option<String> = activation.revoked_at.map(format_date),
}
