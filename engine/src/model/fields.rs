//! Lists of fields: the fields of a type, and the fields of objects that are nested in fields.

use std::ops::Deref;

use super::date::parse_date;
use super::decimal::decimal_of;
use super::definition::{Field, FieldType, Fold};
use super::value::{Object, Value};
use super::written::numbers::WrittenForm;

/// Fields in the declared order, with an index by name.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Fields {
    all: Vec<Field>,
    /// Indexes into `all`, sorted by field name. With this order, lookups are fast even in objects with very many
    /// fields.
    by_name: Vec<usize>,
    /// The number of required fields without a default.
    required: usize,
}

impl Fields {
    /// Returns the field with this name.
    pub fn field(&self, name: &str) -> Option<&Field> {
        let place = self.by_name.binary_search_by(|place| (*self.all[*place].name).cmp(name)).ok()?;
        self.all.get(self.by_name[place])
    }

    /// Returns the number of required fields without a default.
    pub fn required(&self) -> usize {
        self.required
    }
}

impl From<Vec<Field>> for Fields {
    fn from(all: Vec<Field>) -> Fields {
        let mut by_name: Vec<usize> = (0..all.len()).collect();
        // The sort is stable, so a lookup finds the first of several fields with the same name.
        by_name.sort_by(|left, right| all[*left].name.cmp(&all[*right].name));
        by_name.dedup_by(|later, earlier| all[*later].name == all[*earlier].name);
        let required = by_name.iter().filter(|place| all[**place].must_be_given()).count();
        Fields { all, by_name, required }
    }
}

impl Deref for Fields {
    type Target = [Field];

    fn deref(&self) -> &[Field] {
        &self.all
    }
}

impl Field {
    /// Returns whether the field is required and has no default.
    pub fn must_be_given(&self) -> bool {
        self.required && self.default.is_none()
    }

    /// Returns whether the fold of the field collects values in a list. With such a fold, a field of type array also
    /// accepts a single item.
    pub fn collects(&self) -> bool {
        matches!(self.fold, Fold::Append | Fold::Union)
    }

    /// Returns the fields directly inside the field: for an array, the field that describes the items, and for an
    /// object, the fields of the object.
    pub fn inner(&self) -> impl Iterator<Item = &Field> {
        self.items.as_deref().into_iter().chain(self.fields.iter())
    }

    /// Returns the number of fields: the field itself and all fields nested in it.
    pub fn count(&self) -> usize {
        1 + self.inner().map(Field::count).sum::<usize>()
    }

    /// Returns the number of patterns of the field and of all fields nested in it.
    pub fn patterns(&self) -> usize {
        usize::from(self.pattern.is_some()) + self.inner().map(Field::patterns).sum::<usize>()
    }

    /// Returns the path and the type name of each date and each decimal in the field's values. In a path, an array item
    /// has the name `[]`.
    pub fn conversions(&self) -> Vec<(String, &'static str)> {
        let mut found = Vec::from_iter(self.field_type.converted().map(|to| (String::new(), to.name())));
        for inner in self.inner() {
            let name = if inner.name.is_empty() { "[]" } else { &*inner.name };
            found.extend(inner.conversions().into_iter().map(|(rest, to)| (format!(".{name}{rest}"), to)));
        }
        found.sort();
        found
    }

    fn is_converted(&self) -> bool {
        self.field_type.converted().is_some() || self.inner().any(Field::is_converted)
    }

    /// Converts a payload's value to the value in the state. In a field of type date, a string becomes a date. In a
    /// field of type decimal, a string or a number becomes a decimal. A value that cannot be converted stays unchanged.
    /// `written` contains the original texts of the numbers in the value.
    pub fn converted(&self, value: &Value, written: WrittenForm) -> Value {
        match (self.field_type, value) {
            (FieldType::Date, Value::String(text)) => parse_date(text).map_or_else(|| value.clone(), Value::Date),
            (FieldType::Decimal, _) => decimal_of(value, written.text()).map_or_else(|| value.clone(), Value::Decimal),
            (FieldType::Object | FieldType::Array, _) if !self.is_converted() => value.clone(),
            (FieldType::Object, Value::Object(object)) => {
                let converted = object.iter().enumerate().map(|(place, (name, value))| {
                    let convert = |field: &Field| field.converted(value, written.at(place));
                    (name.clone(), self.fields.field(name).map_or_else(|| value.clone(), convert))
                });
                converted.collect::<Object>().into()
            }
            (FieldType::Array, Value::Array(items)) => {
                let converted = |(place, value)| self.converted_item(value, written.at(place));
                items.iter().enumerate().map(converted).collect()
            }
            (FieldType::Array, single) if self.collects() => self.converted_item(single, written),
            _ => value.clone(),
        }
    }

    fn converted_item(&self, value: &Value, written: WrittenForm) -> Value {
        self.items.as_deref().map_or_else(|| value.clone(), |item| item.converted(value, written))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{json, written};

    #[test]
    fn fields_are_found_by_name_and_keep_their_order() {
        let names: Vec<String> = (0..500).map(|number| format!("f{}", number * 7919 % 500)).collect();
        let all: Vec<Field> = names.iter().map(|name| Field::new(name, FieldType::String)).collect();
        let fields = Fields::from(all.clone());
        assert_eq!(*fields, all);
        for field in &all {
            assert_eq!(fields.field(&field.name), Some(field));
        }
        for absent in ["", "e", "f", "f50 ", "f500", "g"] {
            assert_eq!(fields.field(absent), None, "{absent}");
        }
    }

    #[test]
    fn a_lookup_finds_the_first_of_two_fields_with_the_same_name() {
        let all = [("a", FieldType::Date), ("b", FieldType::Array), ("a", FieldType::Number)];
        let fields = Fields::from(all.map(|(name, field_type)| Field::new(name, field_type)).to_vec());
        assert_eq!(fields.field("a"), fields.first());
        assert_eq!(fields.field("b"), fields.get(1));
    }

    #[test]
    fn date_texts_inside_lists_and_objects_become_dates() {
        let date = |name: &str| Field::new(name, FieldType::Date);
        let line = Field { fields: vec![date("due")].into(), ..Field::new("", FieldType::Object) };
        let lines = Field { items: Some(line.into()), ..Field::new("lines", FieldType::Array) };
        assert_eq!(lines.conversions(), [(".[].due".to_owned(), "date")]);
        let text = Value::from("1970-01-01T00:00:01Z");
        let of = |due: Value| -> Value {
            let object = Object::from_iter([("due", due), ("note", text.clone())]);
            vec![object.into(), Value::Int(1)].into()
        };
        assert_eq!(lines.converted(&of(text.clone()), WrittenForm::default()), of(Value::Date(1_000)));
        assert_eq!(lines.converted(&text, WrittenForm::default()), text);
    }

    #[test]
    fn numbers_inside_lists_and_objects_become_decimals_with_all_their_digits() {
        let decimal = |name: &str| Field::new(name, FieldType::Decimal);
        let line = Field { fields: vec![decimal("net")].into(), ..Field::new("", FieldType::Object) };
        let lines = Field { items: Some(line.into()), ..Field::new("lines", FieldType::Array) };
        let rates = Field { items: Some(decimal("").into()), ..Field::new("rates", FieldType::Array) };
        let total = Field { fields: vec![rates, lines].into(), ..Field::new("total", FieldType::Object) };
        let payload = written::read(
            r#"{"total":{"rates":[1.5,0.1234567890123456789],"note":18446744073709551617,"lines":[{},{"x":1,"net":-18446744073709551617}]}}"#,
        )
        .expect("an object");
        let state = total.converted(payload.get("total").expect("the field"), payload.written_at(0));
        assert_eq!(
            json::text(&state),
            r#"{"rates":["1.5","0.1234567890123456789"],"note":1.8446744073709552e+19,"lines":[{},{"x":1,"net":"-18446744073709551617"}]}"#
        );
    }
}
