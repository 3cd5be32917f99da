//! Settings from environment variables, and messages about variables that look like settings but have no effect.
//!
//! The variable `FOLDWORK_<SECTION>__<KEY>` is parsed as the type of its setting. Commas separate the texts of a list.
//! For a list of tables, the name contains the number of the table: `FOLDWORK_AUTH__ISSUERS__0__ISSUER`. Both kinds of
//! lists may also be written as in TOML, between brackets.

use anyhow::{Context as _, bail};
use foldwork_engine::model::excerpt::excerpt_of;
use foldwork_engine::pipeline::hint::did_you_mean;
use toml::{Table, Value};

use super::{Config, Issuer, former_names, former_values};

const PREFIX: &str = "FOLDWORK_";
/// The known variables that are not settings: they contain secrets, or configure the commands that call a server.
const OTHERS: [&str; 8] = [
    "FOLDWORK_AGENT",
    "FOLDWORK_BACKUP_KEY",
    "FOLDWORK_BOOTSTRAP_KEY",
    "FOLDWORK_EMBEDDING_KEY",
    "FOLDWORK_SERVER",
    "FOLDWORK_STORE_PASSWORD",
    "FOLDWORK_STORE_USER",
    "FOLDWORK_TOKEN",
];
/// The section with a table for each plugin. The plugin's manifest determines the keys of its table.
const PLUGINS: &str = "plugins";
/// The maximum number of tables in a list that is set by numbered variables.
const MAX_TABLES: usize = 1_000;
/// The maximum number of unknown variables that are reported.
const MAX_REPORTED: usize = 20;

/// Returns the settings that these variables contain, as a table with the sections of `config.toml`.
pub fn settings(variables: impl IntoIterator<Item = (String, String)>) -> anyhow::Result<Table> {
    let shape = shape()?;
    let mut settings = Table::new();
    for (name, text) in variables {
        let Some(path) = name.strip_prefix(PREFIX).filter(|path| path.contains("__")) else { continue };
        let path = path.to_lowercase();
        let path: Vec<&str> = path.split("__").collect();
        let is_former = former_names::is_former(&path) || former_values::is_former(&path);
        let former = || is_former.then_some(Setting::Untyped);
        let Some(setting) = find(&shape, &path).or_else(former) else {
            bail!("the environment variable {} is not a setting{}", excerpt_of(&name), hint(&name, &shape));
        };
        let value = read(setting, &text).with_context(|| format!("the environment variable {name} is invalid"))?;
        insert(&mut settings, &path, value).with_context(|| format!("the environment variable {name} is invalid"))?;
    }
    lists(&mut settings, &Value::Table(shape), "")?;
    Ok(settings)
}

/// Returns a message for each of the given variables that has the prefix of Foldwork but is neither a setting nor
/// another known variable. Returns at most `MAX_REPORTED` messages.
pub fn unknown(names: impl IntoIterator<Item = String>, config: &Config) -> Vec<String> {
    let Ok(shape) = shape() else { return Vec::new() };
    let secrets: Vec<&str> = config.auth.issuers.iter().map(|issuer| issuer.hs256_secret_env.as_str()).collect();
    let is_unknown = |name: &String| {
        let is_known = OTHERS.contains(&&**name) || secrets.contains(&&**name);
        // `settings` rejects a name with two consecutive underscores that is not a setting.
        name.starts_with(PREFIX) && !name.contains("__") && !is_known
    };
    let unknown = names.into_iter().filter(is_unknown).take(MAX_REPORTED);
    let mut messages: Vec<String> = unknown
        .map(|name| format!("the environment variable {} has no effect{}", excerpt_of(&name), hint(&name, &shape)))
        .collect();
    messages.sort();
    messages
}

/// Returns the known variable that is most similar to a name, as the end of a message. Returns an empty text if no
/// variable is similar.
fn hint(name: &str, shape: &Table) -> String {
    let mut known: Vec<String> = OTHERS.map(str::to_owned).to_vec();
    for (section, settings) in shape {
        let keys = settings.as_table().into_iter().flat_map(Table::keys);
        known.extend(keys.map(|key| format!("{PREFIX}{section}__{key}").to_uppercase()));
    }
    let hint = did_you_mean(name, known.iter().map(String::as_str));
    hint.map(|hint| format!("; {hint}")).unwrap_or_default()
}

/// Returns a table of all settings, in which each value has the type of its setting. A list of tables contains one
/// item.
fn shape() -> anyhow::Result<Table> {
    let mut config = Config::default();
    config.auth.issuers.push(Issuer::default());
    Ok(Table::try_from(config)?)
}

/// The type of a setting.
enum Setting<'a> {
    Typed(&'a Value),
    /// A setting of a plugin, whose type only the plugin's manifest defines, or the former name of a setting.
    Untyped,
}

/// Returns the type of the setting with this path, or `None` if no setting has this path.
fn find<'a>(shape: &'a Table, path: &[&str]) -> Option<Setting<'a>> {
    let (section, rest) = path.split_first()?;
    let mut found = shape.get(*section)?;
    for (depth, part) in rest.iter().enumerate() {
        found = match found {
            Value::Table(table) => match table.get(*part) {
                Some(found) => found,
                None => return (*section == PLUGINS && depth == 0).then_some(Setting::Untyped),
            },
            Value::Array(items) => {
                // A number with leading zeros would be another name of the same table.
                part.parse::<usize>().ok().filter(|index| *index < MAX_TABLES && index.to_string() == *part)?;
                items.first().filter(|item| item.is_table())?
            }
            _ => return None,
        };
    }
    Some(Setting::Typed(found))
}

fn read(setting: Setting<'_>, text: &str) -> anyhow::Result<Value> {
    let wrong = |expected: &str| anyhow::anyhow!("its value is '{}'; expected {expected}", excerpt_of(text));
    Ok(match setting {
        Setting::Untyped => guess(text)?,
        Setting::Typed(Value::String(_)) => Value::String(text.to_owned()),
        Setting::Typed(Value::Integer(_)) => Value::Integer(text.trim().parse().map_err(|_| wrong("a whole number"))?),
        Setting::Typed(Value::Float(_)) => Value::Float(text.trim().parse().map_err(|_| wrong("a number"))?),
        Setting::Typed(Value::Boolean(_)) => {
            Value::Boolean(text.trim().to_lowercase().parse().map_err(|_| wrong("true or false"))?)
        }
        Setting::Typed(Value::Array(_)) if text.trim_start().starts_with('[') => written(text)?,
        Setting::Typed(Value::Array(items)) if items.first().is_some_and(Value::is_table) => {
            return Err(wrong(
                "a list of tables, such as [{…}], or one variable for each field of a table, such as \
                 FOLDWORK_AUTH__ISSUERS__0__ISSUER",
            ));
        }
        Setting::Typed(Value::Array(_)) => {
            let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
            Value::Array(items.map(|item| Value::String(item.to_owned())).collect())
        }
        Setting::Typed(_) => bail!("the name refers to a table; each setting of the table has its own variable"),
    })
}

/// Returns the value of a setting without a known type. The type is derived from the text.
fn guess(text: &str) -> anyhow::Result<Value> {
    let trimmed = text.trim();
    Ok(if trimmed.starts_with('[') {
        written(text)?
    } else if let Ok(value) = trimmed.to_lowercase().parse() {
        Value::Boolean(value)
    } else if let Ok(value) = trimmed.parse() {
        Value::Integer(value)
    } else if let Ok(value) = trimmed.parse() {
        Value::Float(value)
    } else {
        Value::String(text.to_owned())
    })
}

/// Parses a list in the syntax of TOML.
fn written(text: &str) -> anyhow::Result<Value> {
    let mut table: Table =
        toml::from_str(&format!("value = {text}")).context("expected a list in the syntax of TOML")?;
    match (table.remove("value"), table.is_empty()) {
        (Some(value), true) => Ok(value),
        _ => bail!("expected one list in the syntax of TOML"),
    }
}

fn insert(settings: &mut Table, path: &[&str], value: Value) -> anyhow::Result<()> {
    let Some((last, above)) = path.split_last() else { return Ok(()) };
    let mut table = settings;
    for part in above {
        let entry = table.entry((*part).to_owned()).or_insert_with(|| Value::Table(Table::new()));
        table = entry.as_table_mut().context("another variable sets the whole list or table")?;
    }
    match table.insert((*last).to_owned(), value) {
        None => Ok(()),
        Some(Value::Table(_)) => bail!("another variable sets a part of the same list or table"),
        Some(_) => bail!("another variable sets the same setting"),
    }
}

/// Replaces each table of numbered items by a list if the setting is a list. `prefix` is the path of `settings`,
/// followed by a dot, or an empty string for the root.
fn lists(settings: &mut Table, shape: &Value, prefix: &str) -> anyhow::Result<()> {
    for (name, value) in settings.iter_mut() {
        let Some(shape) = shape.get(name.as_str()) else { continue };
        let Value::Table(table) = value else { continue };
        if !shape.is_array() {
            lists(table, shape, &format!("{prefix}{name}."))?;
            continue;
        }
        let numbered = |(number, item): (String, Value)| Ok((number.parse::<usize>()?, item));
        let mut items: Vec<(usize, Value)> =
            std::mem::take(table).into_iter().map(numbered).collect::<anyhow::Result<_>>()?;
        items.sort_by_key(|(number, _)| *number);
        if let Some((expected, _)) = items.iter().enumerate().find(|(place, (number, _))| place != number) {
            bail!(
                "the environment variables of {prefix}{name} have no item with the number {expected}; items are \
                 numbered from 0 without gaps"
            );
        }
        *value = Value::Array(items.into_iter().map(|(_, item)| item).collect());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use foldwork_plugins::limits::CallLimits;

    use super::*;
    use crate::config::{DataSize, TimeSpan};

    fn given(variables: &[(&str, &str)]) -> anyhow::Result<Config> {
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Config::parse(&toml::to_string(&settings(variables)?)?)
    }

    fn refusal(variables: &[(&str, &str)]) -> String {
        format!("{:#}", given(variables).expect_err("refused"))
    }

    #[test]
    fn the_type_of_a_setting_determines_how_its_variable_is_parsed() {
        let config = given(&[
            ("FOLDWORK_HTTP__PUBLIC_URL", "12"),
            ("FOLDWORK_HTTP__STOP_TIMEOUT", "12 s"),
            ("FOLDWORK_HTTP__STOP_DELAY_S", "7"),
            ("FOLDWORK_PIPELINE__MEMORY", "1048576"),
            ("FOLDWORK_AUTH__AUTO_PROVISION", "false"),
            ("FOLDWORK_AUTH__ALLOWED_EMAIL_DOMAINS", "example.org, example.com"),
            ("FOLDWORK_MCP__ALLOWED_HOSTS", "[\"a\", \"b\"]"),
            ("FOLDWORK_PLUGINS__ENABLED", ""),
            ("FOLDWORK_PLUGINS__DEADLINE", "7 s"),
            ("FOLDWORK_PLUGINS__LIMITS__VARIABLES", "7"),
            ("FOLDWORK_REALTIME__SOCKETS_PER_WORKSPACE", "9"),
            ("FOLDWORK_PLUGINS__BREAKER__FIXED", "true"),
            ("FOLDWORK_SEARCH__EMBEDDING__KIND", "local"),
            ("FOLDWORK_SEARCH__EMBEDDING__PATH", "models/small"),
            ("FOLDWORK_TOKEN", "sk_"),
            ("PATH", "a__b"),
        ])
        .expect("settings");
        assert_eq!(config.http.public_url, "12");
        assert_eq!(config.http.stop_timeout, TimeSpan::from_secs(12));
        assert_eq!(config.http.stop_delay, TimeSpan::from_secs(7));
        assert_eq!(config.pipeline.memory, DataSize(1 << 20));
        assert!(!config.auth.auto_provision);
        assert_eq!(config.auth.allowed_email_domains, ["example.org", "example.com"]);
        assert_eq!(config.mcp.allowed_hosts, ["a", "b"]);
        assert!(config.plugins.enabled.is_empty());
        assert_eq!(config.plugins.limits, CallLimits { deadline_ms: 7_000, ..CallLimits::default() });
        assert_eq!(config.http.streams_per_workspace, 9);
        assert!(config.plugins.settings.contains_key("breaker"));
        assert_eq!(config.search.embedding.url, "file://models/small");
    }

    #[test]
    fn issuers_are_read_from_numbered_variables_or_from_a_list() {
        let issuer = |number: usize| Issuer {
            issuer: format!("https://id.example.com/{number}"),
            audience: "foldwork".into(),
            jwks_url: format!("https://id.example.com/{number}/jwks"),
            algorithms: vec!["ES256".into(), "ES384".into()],
            trust_email: true,
            ..Issuer::default()
        };
        let numbered: Vec<(String, String)> = (0..12)
            .flat_map(|number| {
                let Issuer { issuer, audience, jwks_url, .. } = issuer(number);
                [
                    ("ISSUER", issuer),
                    ("AUDIENCE", audience),
                    ("JWKS_URL", jwks_url),
                    ("ALGORITHMS", "ES256,ES384".to_owned()),
                    ("TRUST_EMAIL", "true".to_owned()),
                ]
                .map(|(field, value)| (format!("FOLDWORK_AUTH__ISSUERS__{number}__{field}"), value))
            })
            .collect();
        let numbered: Vec<(&str, &str)> = numbered.iter().map(|(name, value)| (&**name, &**value)).collect();
        let expected: Vec<Issuer> = (0..12).map(issuer).collect();
        assert_eq!(given(&numbered).expect("settings").auth.issuers, expected);
        let list = r#"[{issuer = "https://id.example.com/0", audience = "foldwork",
            jwks_url = "https://id.example.com/0/jwks", algorithms = ["ES256", "ES384"], trust_email = true}]"#;
        assert_eq!(given(&[("FOLDWORK_AUTH__ISSUERS", list)]).expect("settings").auth.issuers, [issuer(0)]);
    }

    #[test]
    fn the_error_about_an_invalid_environment_variable_states_what_is_wrong() {
        for (name, value, expected) in [
            (
                "FOLDWORK_HTP__LISTEN",
                "x",
                "FOLDWORK_HTP__LISTEN is not a setting; did you mean 'FOLDWORK_HTTP__LISTEN'?",
            ),
            ("FOLDWORK_HTTP__LISTEN__X", "x", "is not a setting"),
            ("FOLDWORK_HTTP__MAX_CONNECTIONS", "many", "its value is 'many'; expected a whole number"),
            ("FOLDWORK_AUTH__AUTO_PROVISION", "yes", "expected true or false"),
            ("FOLDWORK_AUTH__ISSUERS", "a,b", "expected a list of tables"),
            ("FOLDWORK_AUTH__ISSUERS__1__ISSUER", "a", "variables of auth.issuers have no item with the number 0"),
            ("FOLDWORK_AUTH__ISSUERS__X__ISSUER", "a", "is not a setting"),
            ("FOLDWORK_AUTH__ISSUERS__00__ISSUER", "a", "is not a setting"),
            ("FOLDWORK_MCP__ALLOWED_HOSTS", "[1", "syntax of TOML"),
            ("FOLDWORK_SEARCH__EMBEDDING", "1", "the name refers to a table"),
        ] {
            let refused = refusal(&[(name, value)]);
            assert!(refused.contains(expected) && refused.contains("environment variable"), "{name}: {refused}");
        }
        // The value of a former name is checked as the value of the new setting, so the error names the new setting.
        let late = refusal(&[("FOLDWORK_HTTP__IDLE_TIMEOUT_S", "soon")]);
        assert!(late.contains("expected a duration such as") && late.contains("http.idle_timeout"), "{late}");
        let twice = [("FOLDWORK_AUTH__ISSUERS", "[]"), ("FOLDWORK_AUTH__ISSUERS__0__ISSUER", "a")];
        assert!(refusal(&twice).contains("another variable sets the whole list"));
    }

    #[test]
    fn variables_without_effect_are_reported_with_a_suggestion() {
        let names = [
            "FOLDWORK_HTTP_LISTEN",
            "FOLDWORK_BOOTSTRAP_KEYS",
            "FOLDWORK_TOKEN",
            "FOLDWORK_HTTP__LISTEN",
            "FOLDWORK_ID_SECRET",
            "FOLDWORK_SOMETHING_ELSE",
            "OTHER",
        ];
        let mut config = Config::default();
        config.auth.issuers.push(Issuer { hs256_secret_env: "FOLDWORK_ID_SECRET".into(), ..Issuer::default() });
        let expected = [
            "the environment variable FOLDWORK_BOOTSTRAP_KEYS has no effect; did you mean 'FOLDWORK_BOOTSTRAP_KEY'?",
            "the environment variable FOLDWORK_HTTP_LISTEN has no effect; did you mean 'FOLDWORK_HTTP__LISTEN'?",
            "the environment variable FOLDWORK_SOMETHING_ELSE has no effect",
        ];
        assert_eq!(unknown(names.map(str::to_owned), &config), expected);
    }
}
