//! The rooms of each crate, and the rooms that each of them may name.

/// A room, and the rooms that it may name. A room is a file or a folder below `src`. A room that contains other rooms has
/// no other files besides its own module.
pub type Room = (&'static str, &'static [&'static str]);

/// The rooms of the engine, lowest first.
pub const ENGINE: &[Room] = &[
    ("offload", &[]),
    ("model", &[]),
    ("pipeline/column", &["model"]),
    ("pipeline/value", &["model"]),
    ("pipeline/expression", &["model", "pipeline/value"]),
    ("pipeline/source", &["model", "pipeline/column", "pipeline/value", "pipeline/expression"]),
    ("pipeline/language", &["model", "pipeline/value", "pipeline/expression", "pipeline/source"]),
    (
        "pipeline/run",
        &["model", "pipeline/column", "pipeline/value", "pipeline/expression", "pipeline/source", "pipeline/language"],
    ),
    (
        "pipeline/plan",
        &[
            "model",
            "pipeline/column",
            "pipeline/value",
            "pipeline/expression",
            "pipeline/source",
            "pipeline/language",
            "pipeline/run",
        ],
    ),
    (
        "pipeline",
        &[
            "model",
            "pipeline/column",
            "pipeline/value",
            "pipeline/expression",
            "pipeline/source",
            "pipeline/language",
            "pipeline/run",
            "pipeline/plan",
        ],
    ),
    ("hook", &["model"]),
    ("clock", &[]),
    ("named_locks", &[]),
    ("store", &["model", "pipeline"]),
    ("resident", &["model", "pipeline/column"]),
    ("error", &["model", "pipeline", "store"]),
    ("access", &["model", "clock", "named_locks", "store", "error"]),
    ("core", &["offload", "model", "pipeline", "hook", "clock", "store", "resident", "error"]),
    ("mailbox", &["model", "pipeline/column", "store", "resident", "error", "core"]),
    ("consumer", &["model", "hook", "clock", "store", "resident", "error", "core", "mailbox"]),
    (
        "workspace",
        &[
            "offload",
            "model",
            "pipeline",
            "pipeline/column",
            "hook",
            "clock",
            "named_locks",
            "store",
            "resident",
            "error",
            "access",
            "core",
            "mailbox",
            "consumer",
        ],
    ),
    ("registry", &["store", "error", "core", "workspace"]),
    ("opening", &["model", "hook", "clock", "store", "error", "access", "core", "workspace"]),
    ("engine", &["model", "hook", "clock", "store", "error", "access", "core", "workspace", "registry", "opening"]),
];

/// The rooms of the plugins, lowest first.
pub const PLUGINS: &[Room] = &[
    ("suggestion", &[]),
    ("memory", &[]),
    ("error", &[]),
    ("limits", &[]),
    ("mount", &[]),
    ("native", &["mount"]),
    ("feed", &["mount", "native"]),
    ("mcp", &["native"]),
    ("natives", &["mount", "native", "feed", "mcp"]),
    ("folder", &["error"]),
    ("manifest", &["suggestion", "error", "limits", "mcp", "folder"]),
    ("script", &["suggestion", "memory", "error", "limits", "folder", "manifest"]),
    ("registry", &["suggestion", "error", "limits", "natives", "folder", "script"]),
];

/// The rooms of the server, lowest first.
pub const SERVER: &[Room] = &[
    ("config", &[]),
    ("telemetry", &["config"]),
    ("embedding", &["config"]),
    ("http", &["config"]),
    ("wire", &["http"]),
    ("auth", &["config", "http"]),
    ("download", &["http"]),
    ("realtime", &["config", "http", "wire"]),
    ("api", &["config", "http", "wire", "auth", "download"]),
    ("mounted", &["config", "http", "auth"]),
    ("mcp", &["config", "http", "auth"]),
    ("edge", &["config", "http"]),
    ("application", &["config", "http", "wire", "download", "realtime", "api", "mounted", "mcp", "edge"]),
    ("serve", &["config", "telemetry", "embedding", "http", "auth", "application"]),
    ("cli", &["config", "wire", "download", "serve"]),
];
