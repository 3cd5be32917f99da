//! The kinds of sources that create tasks.

/// The kind of source that created a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceType {
    Agent,
    Event,
    User,
    Api,
}

impl SourceType {
    pub const ALL: [SourceType; 4] = [SourceType::Agent, SourceType::Event, SourceType::User, SourceType::Api];

    pub fn name(self) -> &'static str {
        match self {
            SourceType::Agent => "agent",
            SourceType::Event => "event",
            SourceType::User => "user",
            SourceType::Api => "api",
        }
    }

    /// Returns the kind with this name.
    pub fn parse(name: &str) -> Option<SourceType> {
        SourceType::ALL.into_iter().find(|kind| kind.name() == name)
    }
}
