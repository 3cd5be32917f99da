//! Type definitions: the fields of a type's aggregates, and how events are folded into them.

use std::sync::Arc;

use super::value::{Object, Value};

/// The fields that serve as the label if the type does not declare a label, in order of preference.
const DEFAULT_LABELS: [&str; 2] = ["title", "name"];

/// The type of a field's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldType {
    String,
    Number,
    Integer,
    Boolean,
    Date,
    Object,
    Array,
    Reference,
}

impl FieldType {
    pub const ALL: [FieldType; 8] = [
        FieldType::String,
        FieldType::Number,
        FieldType::Integer,
        FieldType::Boolean,
        FieldType::Date,
        FieldType::Object,
        FieldType::Array,
        FieldType::Reference,
    ];

    pub fn name(self) -> &'static str {
        match self {
            FieldType::String => "string",
            FieldType::Number => "number",
            FieldType::Integer => "integer",
            FieldType::Boolean => "boolean",
            FieldType::Date => "date",
            FieldType::Object => "object",
            FieldType::Array => "array",
            FieldType::Reference => "reference",
        }
    }
}

/// How the values of a field in successive events are combined into the field's value in the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
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

impl Fold {
    pub const ALL: [Fold; 8] =
        [Fold::Last, Fold::First, Fold::Sum, Fold::Count, Fold::Min, Fold::Max, Fold::Union, Fold::Append];

    pub fn name(self) -> &'static str {
        match self {
            Fold::Last => "last",
            Fold::First => "first",
            Fold::Sum => "sum",
            Fold::Count => "count",
            Fold::Min => "min",
            Fold::Max => "max",
            Fold::Union => "union",
            Fold::Append => "append",
        }
    }
}

/// A field of a type.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    pub name: Arc<str>,
    pub field_type: FieldType,
    /// Whether the payload of a `<type>.created` event must contain the field.
    pub required: bool,
    /// The value that is added to the payload of a `<type>.created` event without the field.
    pub default: Option<Value>,
    pub allowed: Option<Vec<Value>>,
    /// The smallest and largest allowed number, or length of a string (in characters) or array.
    pub min: Option<f64>,
    pub max: Option<f64>,
    /// A regular expression that texts must match. The expression is compiled when a payload is checked.
    pub pattern: Option<Arc<str>>,
    /// Whether the field is the label of the aggregate's node.
    pub label: bool,
    /// Whether the field holds personal data.
    pub personal: bool,
    pub fold: Fold,
    /// The type of the referenced aggregate, if the field is a reference.
    pub reference_type: Option<Arc<str>>,
}

/// The definition of an aggregate type.
#[derive(Debug, Clone, PartialEq)]
pub struct Definition {
    pub type_name: Arc<str>,
    pub display_name: String,
    pub traits: Vec<Arc<str>>,
    /// The fields in the declared order.
    pub(super) fields: Vec<Field>,
    /// Indexes into `fields`, sorted by field name. They make lookups fast for events with very many fields.
    pub(super) by_name: Vec<usize>,
    /// The declared event schemas in the form that the client sent: an object from event type to field definitions.
    pub events: Arc<Object>,
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
        let traits_value = Value::from(traits.iter().cloned().map(Value::from).collect::<Vec<_>>());
        let mut by_name: Vec<usize> = (0..fields.len()).collect();
        // The sort is stable, so a lookup finds the first of several fields with the same name.
        by_name.sort_by(|left, right| fields[*left].name.cmp(&fields[*right].name));
        by_name.dedup_by(|later, earlier| fields[*later].name == fields[*earlier].name);
        Definition {
            type_name: type_name.into(),
            display_name: display_name.into(),
            traits,
            fields,
            by_name,
            events: Arc::default(),
            revision: 1,
            builtin: false,
            managed: false,
            traits_value,
        }
    }

    /// Returns the label of an aggregate: the value of the declared label field, or of `title` or `name` if none is
    /// declared.
    pub fn label_of(&self, state: &Object) -> Option<Arc<str>> {
        let declared = self.fields.iter().filter(|field| field.label).map(|field| &*field.name);
        let text = |name: &str| match state.get(name)? {
            Value::String(text) if !text.trim().is_empty() => Some(text.clone()),
            number @ (Value::Int(_) | Value::Double(_)) => Some(super::json::text(number).into()),
            _ => None,
        };
        declared.chain(DEFAULT_LABELS).find_map(text)
    }

    /// Returns the names of the declared label fields, in the declared order.
    pub fn label_fields(&self) -> Vec<Arc<str>> {
        self.fields.iter().filter(|field| field.label).map(|field| field.name.clone()).collect()
    }

    /// Returns the fields in the declared order.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// Returns the field with this name.
    pub fn field(&self, name: &str) -> Option<&Field> {
        let place = self.by_name.binary_search_by(|place| (*self.fields[*place].name).cmp(name)).ok()?;
        self.fields.get(self.by_name[place])
    }

    /// Returns the traits as an array for pipelines.
    pub fn traits_value(&self) -> Value {
        self.traits_value.clone()
    }

    /// Returns a description of each change in `next` that would break data or clients that rely on this definition.
    pub fn breaking_changes(&self, next: &Definition) -> Vec<String> {
        let mut breaks = Vec::new();
        for removed in self.traits.iter().filter(|name| !next.traits.contains(name)) {
            breaks.push(format!("trait '{removed}' would be removed"));
        }
        for field in &self.fields {
            match next.field(&field.name) {
                None => breaks.push(format!("field '{}' would be removed", field.name)),
                Some(next) => field.breaking_changes(next, &mut breaks),
            }
        }
        for added in next.fields.iter().filter(|added| added.required && self.field(&added.name).is_none()) {
            breaks.push(format!("new field '{}' must not be required", added.name));
        }
        breaks
    }

    /// Returns whether both definitions fold events into the same states.
    pub fn folds_like(&self, next: &Definition) -> bool {
        let shape = |definition: &Definition| {
            let mut shape: Vec<_> = definition
                .fields
                .iter()
                .map(|field| (field.name.clone(), field.fold.name(), field.field_type == FieldType::Date))
                .filter(|(_, fold, is_date)| *fold != Fold::Last.name() || *is_date)
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
            fold: Fold::Last,
            reference_type: None,
        }
    }

    fn breaking_changes(&self, next: &Field, breaks: &mut Vec<String>) {
        let name = &self.name;
        let mut changed = |what: &str, from: String, to: String| {
            breaks.push(format!("field '{name}': {what} would change from {from} to {to}"));
        };
        if self.field_type != next.field_type {
            changed("type", self.field_type.name().into(), next.field_type.name().into());
        }
        if self.fold != next.fold {
            changed("fold", self.fold.name().into(), next.fold.name().into());
        }
        if !self.required && next.required {
            changed("required", "false".into(), "true".into());
        }
        if self.reference_type != next.reference_type && next.reference_type.is_some() {
            changed("reference_type", shown(&self.reference_type), shown(&next.reference_type));
        }
        if next.min.is_some_and(|min| self.min.is_none_or(|was| was < min)) {
            changed("min", shown(&self.min), shown(&next.min));
        }
        if next.max.is_some_and(|max| self.max.is_none_or(|was| was > max)) {
            changed("max", shown(&self.max), shown(&next.max));
        }
        if let Some(pattern) = next.pattern.as_ref().filter(|pattern| self.pattern.as_ref() != Some(pattern)) {
            changed("pattern", shown(&self.pattern), pattern.to_string());
        }
        if let Some(allowed) = &next.allowed {
            let kept = |values: &Vec<Value>| values.iter().all(|value| allowed.contains(value));
            if !self.allowed.as_ref().is_some_and(kept) {
                breaks.push(format!("field '{name}': enum would reject values that are allowed now"));
            }
        }
    }
}

fn shown<T: ToString>(value: &Option<T>) -> String {
    value.as_ref().map_or_else(|| "none".into(), T::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_name_and_keep_their_order() {
        let names: Vec<String> = (0..500).map(|number| format!("f{}", number * 7919 % 500)).collect();
        let fields: Vec<Field> = names.iter().map(|name| Field::new(name, FieldType::String)).collect();
        let definition = Definition::new("note", "Note", Vec::new(), fields.clone());
        assert_eq!(definition.fields(), fields);
        for field in &fields {
            assert_eq!(definition.field(&field.name), Some(field));
        }
        for absent in ["", "e", "f", "f50 ", "f500", "g"] {
            assert_eq!(definition.field(absent), None, "{absent}");
        }
    }

    #[test]
    fn the_first_of_two_fields_with_one_name_is_found() {
        let fields = [("a", FieldType::Date), ("b", FieldType::Array), ("a", FieldType::Number)];
        let fields = fields.map(|(name, field_type)| Field::new(name, field_type));
        let definition = Definition::new("note", "Note", Vec::new(), fields.to_vec());
        assert_eq!(definition.field("a"), fields.first());
        assert_eq!(definition.field("b"), fields.get(1));
    }
}
