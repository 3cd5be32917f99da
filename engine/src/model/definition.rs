//! Type definitions: the fields of a type's aggregates, and the rules for folding events into the fields.

use std::sync::Arc;

use strum::{EnumString, IntoStaticStr, VariantArray};

use super::closed_set::named;
use super::fields::Fields;
use super::value::{Object, Value};

/// The fields that serve as the label if no declared label field has a value, in order of preference.
const DEFAULT_LABELS: [&str; 2] = ["title", "name"];
/// The maximum size of a label in a response with many aggregates, in bytes, without the `…` that marks a cut. Clients
/// choose the size of a label.
const SHOWN_LABEL_BYTES: usize = 512;

/// A field that search covers, in addition to the fields of type string, if the type neither declares this field nor
/// marks fields for search.
const BODY: &str = "body";
/// The largest weight of a searched field.
pub const MAX_SEARCH_WEIGHT: u32 = 10;

named!(FieldType, Fold, UnknownFields);

/// The type of a field's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum FieldType {
    String,
    Number,
    Integer,
    Decimal,
    Boolean,
    Date,
    Object,
    Array,
    Reference,
}

impl FieldType {
    /// Returns the type itself if folding converts values of this type, and `None` otherwise. States contain converted
    /// values in a different form than payloads.
    pub fn converted(self) -> Option<FieldType> {
        matches!(self, FieldType::Date | FieldType::Decimal).then_some(self)
    }
}

/// The rule that combines the values of a field in successive events into the field's value in the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum Fold {
    #[default]
    Last,
    First,
    Sum,
    Count,
    Min,
    Max,
    Union,
    Append,
}

/// The rule for the fields of a payload that the type does not declare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum UnknownFields {
    /// The fields become fields of the state.
    #[default]
    Accept,
    /// The event is rejected.
    Reject,
}

/// A field of a type.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    pub name: Arc<str>,
    pub field_type: FieldType,
    /// Whether the event that begins the state of an aggregate must contain the field, unless the field has a default.
    /// This event is the first event of a stream, or a `<type>.created` without `restore` after a deletion;
    /// `append::checks` has the exceptions. A required field inside an object field must be in every value of the
    /// object field.
    pub required: bool,
    /// The value of the field in a new state if the first event of the state lacks the field. If the field is required,
    /// null in this event is replaced by the default as well.
    pub default: Option<Value>,
    pub allowed: Option<Vec<Value>>,
    /// The smallest allowed number. For an array, the smallest allowed number of items. For a string, the smallest
    /// allowed number of characters.
    pub min: Option<f64>,
    /// The largest allowed number. For an array, the largest allowed number of items. For a string, the largest allowed
    /// number of characters.
    pub max: Option<f64>,
    /// The regular expression that strings must match. The expression is compiled when a payload is checked.
    pub pattern: Option<Arc<str>>,
    /// Whether the field is a label field, which gives an aggregate its label (see [`Definition::label_of`]).
    pub label: bool,
    /// Whether the field contains personal data.
    pub personal: bool,
    /// Whether the field is marked for search (see [`Definition::searched`]).
    pub search: bool,
    /// The weight of each word in the field, from 1 to [`MAX_SEARCH_WEIGHT`].
    pub search_weight: u32,
    pub fold: Fold,
    /// The type of the referenced aggregate, if the field is a reference.
    pub reference_type: Option<Arc<str>>,
    /// Whether the referenced aggregate must exist when an event refers to it.
    pub must_exist: bool,
    /// The items of an array, described like a field without a name.
    pub items: Option<Box<Field>>,
    /// The declared fields of an object. An object may have other fields as well, unless the type rejects unknown
    /// fields.
    pub fields: Fields,
}

/// The definition of an aggregate type.
#[derive(Debug, Clone, PartialEq)]
pub struct Definition {
    pub type_name: Arc<str>,
    pub display_name: String,
    pub traits: Vec<Arc<str>>,
    pub(super) fields: Fields,
    /// The declared event schemas in the form that the client sent: an object that maps each event type to
    /// `{description, fields}`.
    pub events: Arc<Object>,
    /// The rule for undeclared fields of a payload. The rule also applies to an object in a payload if the definition
    /// declares fields of the object.
    pub unknown: UnknownFields,
    /// The revision of the definition. A redefinition that changes how events are folded increments the revision, so
    /// that states stored under an earlier revision are recognized as outdated.
    pub revision: u64,
    /// Whether the type is built into the program and not defined by a client.
    pub builtin: bool,
    /// Whether events are appended only by the operations for this type, and not by general requests to append events.
    pub managed: bool,
    pub(super) traits_value: Value,
}

impl Definition {
    pub fn new(type_name: &str, display_name: &str, traits: Vec<Arc<str>>, fields: Vec<Field>) -> Definition {
        let traits_value = traits.iter().cloned().collect();
        Definition {
            type_name: type_name.into(),
            display_name: display_name.into(),
            traits,
            fields: fields.into(),
            events: Arc::default(),
            unknown: UnknownFields::Accept,
            revision: 1,
            builtin: false,
            managed: false,
            traits_value,
        }
    }

    /// Returns the label of an aggregate: the first number or non-blank string in the declared label fields, or else in
    /// `title` or `name`.
    pub fn label_of(&self, state: &Object) -> Option<Arc<str>> {
        let declared = self.fields.iter().filter(|field| field.label).map(|field| &*field.name);
        let text = |name: &str| match state.get(name)? {
            Value::String(text) if !text.trim().is_empty() => Some(text.clone()),
            number @ (Value::Int(_) | Value::Double(_)) => Some(super::json::text(number).into()),
            Value::Decimal(number) => Some(number.to_string().into()),
            _ => None,
        };
        declared.chain(DEFAULT_LABELS).find_map(text)
    }

    /// Returns the label for a response with many aggregates. A label of more than [`SHOWN_LABEL_BYTES`] bytes is cut.
    pub fn shown_label_of(&self, state: &Object) -> Option<Arc<str>> {
        let label = self.label_of(state)?;
        if label.len() <= SHOWN_LABEL_BYTES {
            return Some(label);
        }
        Some(format!("{}…", &label[..label.floor_char_boundary(SHOWN_LABEL_BYTES)]).into())
    }

    /// Returns the names of the declared label fields, in the declared order.
    pub fn label_fields(&self) -> Vec<Arc<str>> {
        self.fields.iter().filter(|field| field.label).map(|field| field.name.clone()).collect()
    }

    /// Returns the names of the fields by which search finds the aggregates, each with the weight of its words. Search
    /// always covers the label fields, and the fields that are marked for search. If no field is marked, search also
    /// covers all fields of type string, and `body` if the type does not declare this field.
    pub fn searched(&self) -> impl Iterator<Item = (&str, u32)> {
        let is_marked = self.fields.iter().any(|field| field.search);
        let is_searched = move |field: &&Field| match is_marked {
            true => field.search || field.label,
            false => field.field_type == FieldType::String || field.label,
        };
        let undeclared = (!is_marked && self.field(BODY).is_none()).then_some((BODY, 1));
        let declared = self.fields.iter().filter(is_searched);
        declared.map(|field| (&*field.name, field.search_weight)).chain(undeclared)
    }

    /// Returns the fields in the declared order.
    pub fn fields(&self) -> &Fields {
        &self.fields
    }

    /// Returns the field with this name.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.field(name)
    }

    /// Returns the names of the fields that the schema of one event type declares. Does not return the fields that the
    /// aggregate type declares for all its events.
    pub fn event_fields(&self, event_type: &str) -> impl Iterator<Item = &str> {
        let schema = self.events.get(event_type).and_then(|schema| schema.get("fields"));
        let fields = schema.and_then(Value::as_array).into_iter().flatten();
        fields.filter_map(|field| field.get("name").and_then(Value::as_str))
    }

    /// Returns the traits as an array for pipelines.
    pub fn traits_value(&self) -> Value {
        self.traits_value.clone()
    }

    /// Returns a description of each change in `next` that would break data or clients that rely on this definition.
    /// Does not compare the defaults of fields and the schemas of events.
    pub fn breaking_changes(&self, next: &Definition) -> Vec<String> {
        let mut breaks = Vec::new();
        for removed in self.traits.iter().filter(|name| !next.traits.contains(name)) {
            breaks.push(format!("trait '{removed}' would be removed"));
        }
        if self.unknown == UnknownFields::Accept && next.unknown == UnknownFields::Reject {
            breaks.push("the rule for unknown fields would change from `accept` to `reject`".to_owned());
        }
        self.fields.breaking_changes(&next.fields, "", &mut breaks);
        breaks
    }

    /// Returns whether both definitions fold events into the same states.
    pub fn folds_like(&self, next: &Definition) -> bool {
        let shape = |definition: &Definition| {
            let mut shape: Vec<_> = definition
                .fields
                .iter()
                .map(|field| (field.name.clone(), field.fold.name(), field.conversions()))
                .filter(|(_, fold, conversions)| *fold != Fold::Last.name() || !conversions.is_empty())
                .collect();
            shape.sort();
            shape
        };
        shape(self) == shape(next)
    }
}

impl Field {
    pub fn new(name: &str, field_type: FieldType) -> Field {
        Field {
            name: name.into(),
            field_type,
            required: false,
            default: None,
            allowed: None,
            min: None,
            max: None,
            pattern: None,
            label: false,
            personal: false,
            search: false,
            search_weight: 1,
            fold: Fold::Last,
            reference_type: None,
            must_exist: false,
            items: None,
            fields: Fields::default(),
        }
    }

    /// Adds a description of each change in `next` that would break data or clients. `name` is the path of the field.
    fn breaking_changes(&self, next: &Field, name: &str, breaks: &mut Vec<String>) {
        let restricts_type = self.reference_type != next.reference_type && next.reference_type.is_some();
        let raises_min = next.min.is_some_and(|min| self.min.is_none_or(|was| was < min));
        let lowers_max = next.max.is_some_and(|max| self.max.is_none_or(|was| was > max));
        let restricts_text = self.pattern != next.pattern && next.pattern.is_some();
        let changes: [(&str, bool, String, String); 7] = [
            ("type", self.field_type != next.field_type, self.field_type.name().into(), next.field_type.name().into()),
            ("fold", self.fold != next.fold, self.fold.name().into(), next.fold.name().into()),
            ("required", !self.required && next.required, "false".into(), "true".into()),
            ("reference_type", restricts_type, shown(&self.reference_type), shown(&next.reference_type)),
            ("min", raises_min, shown(&self.min), shown(&next.min)),
            ("max", lowers_max, shown(&self.max), shown(&next.max)),
            ("pattern", restricts_text, shown(&self.pattern), shown(&next.pattern)),
        ];
        for (what, _, from, to) in changes.into_iter().filter(|(_, is_breaking, ..)| *is_breaking) {
            breaks.push(format!("field '{name}': `{what}` would change from {from} to {to}"));
        }
        if let Some(allowed) = &next.allowed {
            let kept = |values: &Vec<Value>| values.iter().all(|value| allowed.contains(value));
            if !self.allowed.as_ref().is_some_and(kept) {
                breaks.push(format!("field '{name}': `enum` would reject values that are allowed now"));
            }
        }
        if !self.must_exist && next.must_exist {
            breaks.push(format!("field '{name}': `must_exist` would change from false to true"));
        }
        match (&self.items, &next.items) {
            (Some(items), Some(next)) => items.breaking_changes(next, &format!("{name}[]"), breaks),
            (None, Some(_)) => breaks.push(format!("field '{name}': `items` would reject values that are allowed now")),
            (_, None) => {}
        }
        self.fields.breaking_changes(&next.fields, &format!("{name}."), breaks);
    }
}

impl Fields {
    /// Adds a description of each change in `next` that would break data or clients. `at` is the prefix of the fields'
    /// paths.
    fn breaking_changes(&self, next: &Fields, at: &str, breaks: &mut Vec<String>) {
        for field in self.iter() {
            let path = format!("{at}{}", field.name);
            match next.field(&field.name) {
                None => breaks.push(format!("field '{path}' would be removed")),
                Some(next) => field.breaking_changes(next, &path, breaks),
            }
        }
        for added in next.iter().filter(|added| added.required && self.field(&added.name).is_none()) {
            breaks.push(format!("new field '{at}{}' must not be required", added.name));
        }
    }
}

fn shown<T: ToString>(value: &Option<T>) -> String {
    value.as_ref().map_or_else(|| "none".into(), T::to_string)
}
