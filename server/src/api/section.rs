//! The sections of the OpenAPI document.

use poem_openapi::Tags;

/// The sections of the OpenAPI document.
#[derive(Tags)]
pub enum Section {
    /// The workspace and its projects.
    Workspace,
    /// API keys of the workspace, and sign-in codes.
    Keys,
    /// Members of the workspace, their invitations and their plans.
    Members,
    /// All workspaces, users and backups of the installation, for its operators.
    Operators,
    /// Licenses of apps on devices: validating, activating and revoking devices.
    License,
    /// Aggregate types, events, folded states and pipelines.
    Aggregates,
    /// Articles: drafts and published revisions.
    Articles,
    /// Agents: their registration, presence and feeds.
    Agents,
    /// Tasks for people and agents. Agents do the work, and people review the results.
    Mailbox,
    /// Files. The bytes are stored outside the log, and the history is stored in the log.
    Files,
    /// Plugins, their parked steps, and the consumers of the log.
    Plugins,
}
