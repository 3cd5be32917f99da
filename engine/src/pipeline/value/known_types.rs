//! The types of a workspace with their fields: the declared fields, and the fields of earlier events.

use std::cell::Cell;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::hint;
use crate::model::definition::{Definition, Field, FieldType, Fold};
use crate::model::fields::Fields;
use crate::model::value::Value;

/// The maximum number of types whose fields are searched for a similar name. If a field may belong to more types than
/// this maximum, no search takes place, because a search takes much longer than a lookup.
const MAX_COMPARED_TYPES: usize = 20;
/// The maximum number of searches for a similar name in one query.
const MAX_COMPARISONS: u32 = 50;

/// The names of aggregate types. `None` means all types of the workspace.
pub type TypeNames = Option<Arc<BTreeSet<Arc<str>>>>;

/// The types of a workspace, with their fields.
pub struct KnownTypes<'a> {
    definitions: &'a HashMap<Arc<str>, Arc<Definition>>,
    observed: ObservedFields<'a>,
    comparisons: Cell<u32>,
}

/// The functions that look up the fields of earlier events. The first argument of each function is the name of an
/// aggregate type.
#[derive(Clone, Copy)]
pub struct ObservedFields<'a> {
    /// The function that returns whether an earlier event of the type had the field. Also returns `true` if this is not
    /// known.
    pub has_field: &'a dyn Fn(&str, &str) -> bool,
    /// The function that returns the fields of the type's earlier events.
    pub fields: &'a dyn Fn(&str) -> Vec<String>,
}

/// The kind of the values that a field has in the states of several types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldKind {
    /// A date in every type that has the field.
    Date,
    /// A decimal in every type that has the field.
    Decimal,
    /// Different kinds in different types.
    Mixed,
    /// Objects with declared fields.
    Objects,
    /// Any other kind.
    Plain,
}

/// The reason why no value of a field can equal a constant.
#[derive(Debug, Clone, Copy)]
pub enum ConstantMismatch<'d> {
    /// The values of the field have this type.
    Type(FieldType),
    /// The field allows only these values.
    Values(&'d [Value]),
}

/// The form of the values at a path. Payloads contain dates and decimals in the notation of the client. States contain
/// the converted dates and decimals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueForm {
    Payload,
    State,
}

/// The declaration that a definition contains for the values at a path.
enum PathDeclaration<'d> {
    /// The values of a field or of its items.
    Values(&'d Field),
    /// The values are inside a field whose objects or items are not described.
    Undescribed,
    /// The definition declares no values at the path. Contains the declared fields of the object in which the next name
    /// of the path is not declared. Contains `None` if the path continues after a value that has no fields.
    Nothing(Option<&'d Fields>),
}

impl<'a> KnownTypes<'a> {
    pub fn new(definitions: &'a HashMap<Arc<str>, Arc<Definition>>, observed: ObservedFields<'a>) -> KnownTypes<'a> {
        KnownTypes { definitions, observed, comparisons: Cell::new(0) }
    }

    /// Returns the kind of the values that the states of these types have at a path.
    pub fn field_kind(&self, types: &TypeNames, path: &str) -> FieldKind {
        let name = first_of(path);
        let mut known = None;
        for definition in self.among(types) {
            let kind = match (definition.field(name), declared(definition, path)) {
                (Some(field), PathDeclaration::Values(inner)) => kind_of(field, inner),
                (Some(_), PathDeclaration::Undescribed) => FieldKind::Plain,
                (None, _) if (self.observed.has_field)(&definition.type_name, name) => FieldKind::Plain,
                _ => continue,
            };
            known = match known {
                Some(before) if before != kind => return FieldKind::Mixed,
                _ => Some(kind),
            };
        }
        known.unwrap_or(FieldKind::Plain)
    }

    /// Returns the reason why no value at a path can equal a constant, or `None` if a value may equal the constant.
    pub fn refusal<'s>(
        &'s self,
        types: &'s TypeNames,
        path: &str,
        constant: &Value,
        form: ValueForm,
    ) -> Option<ConstantMismatch<'s>> {
        let name = first_of(path);
        let mut refusal = None;
        for definition in self.among(types) {
            match (definition.field(name), declared(definition, path)) {
                (Some(field), PathDeclaration::Values(inner)) => {
                    // If one of the types allows the constant, the comparison is not a mistake.
                    let refused = refused(field, inner, constant, form)?;
                    refusal.get_or_insert(refused);
                }
                (Some(_), PathDeclaration::Undescribed) => return None,
                (None, _) if (self.observed.has_field)(&definition.type_name, name) => return None,
                _ => {}
            }
        }
        refusal
    }

    /// Returns whether any of these types declares a value at the path. Also returns `true` if the path leads into a
    /// declared field whose content is not described.
    pub fn declares(&self, types: &TypeNames, path: &str) -> bool {
        let is_declared = |found: &Definition| {
            found.field(first_of(path)).is_some() && !matches!(declared(found, path), PathDeclaration::Nothing(_))
        };
        self.among(types).any(|definition| is_declared(definition))
    }

    /// Returns whether the workspace has any of these types.
    pub fn has_any(&self, types: &TypeNames) -> bool {
        self.among(types).next().is_some()
    }

    /// Returns whether aggregates of these types may have the field.
    pub fn has_field(&self, types: &TypeNames, name: &str) -> bool {
        let has = |definition: &Arc<Definition>| {
            definition.field(name).is_some() || (self.observed.has_field)(&definition.type_name, name)
        };
        self.among(types).any(has)
    }

    /// Returns whether aggregates of these types may have a value at the path. Returns `true` if one of the types
    /// declares a value at the path, if the path leads into a declared field whose content is not described, or if
    /// earlier events have set the undeclared field that the path begins with.
    pub fn may_have(&self, types: &TypeNames, path: &str) -> bool {
        let name = first_of(path);
        self.among(types).any(|definition| match definition.field(name) {
            Some(_) => !matches!(declared(definition, path), PathDeclaration::Nothing(_)),
            None => (self.observed.has_field)(&definition.type_name, name),
        })
    }

    /// Replaces the first undeclared name in `path` with the most similar declared name, and returns the new path. Uses
    /// the first type in `types` that declares a similar name, and skips types that lack the first name of the path.
    /// Call this function only if `types` allow no value at the path. Returns `None` if there is no similar name, or if
    /// a limit on comparisons is exceeded.
    pub fn nearest_path(&self, types: &TypeNames, path: &str) -> Option<String> {
        if self.among(types).count() > MAX_COMPARED_TYPES || self.comparisons.get() >= MAX_COMPARISONS {
            return None;
        }
        self.comparisons.set(self.comparisons.get() + 1);
        self.among(types).find_map(|definition| {
            // The shortest undeclared prefix of the path ends with the wrong name.
            let ends = path.match_indices('.').map(|(end, _)| end).chain([path.len()]);
            let (wrong, fields) = ends.map(|end| &path[..end]).find_map(|part| match declared(definition, part) {
                PathDeclaration::Nothing(fields) => Some((part, fields)),
                _ => None,
            })?;
            let (before, name) = wrong.rsplit_once('.')?;
            let nearest = hint::nearest(name, fields?.iter().map(|field| &*field.name))?;
            Some(format!("{before}.{nearest}{}", &path[wrong.len()..]))
        })
    }

    /// Returns the field whose name is most similar to `name`, in the first of these types that has a similar field.
    /// Call this function only if none of these types has the field `name`. Returns `None` if there is no similar
    /// field, or if a limit on comparisons is exceeded.
    pub fn nearest_field(&self, types: &TypeNames, name: &str) -> Option<String> {
        if self.among(types).count() > MAX_COMPARED_TYPES || self.comparisons.get() >= MAX_COMPARISONS {
            return None;
        }
        self.comparisons.set(self.comparisons.get() + 1);
        self.among(types).find_map(|definition| {
            let observed = (self.observed.fields)(&definition.type_name);
            let declared = definition.fields().iter().map(|field| &*field.name);
            let names = declared.chain(observed.iter().map(String::as_str));
            hint::nearest(name, names).map(str::to_owned)
        })
    }

    fn among<'s>(&'s self, types: &'s TypeNames) -> Box<dyn Iterator<Item = &'s Arc<Definition>> + 's> {
        match types {
            Some(names) => Box::new(names.iter().filter_map(|name| self.definitions.get(name))),
            None => Box::new(self.definitions.values()),
        }
    }
}

/// Returns whether the name in a path can be the index of an item.
pub fn is_index(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_digit())
}

fn first_of(path: &str) -> &str {
    path.split_once('.').map_or(path, |(first, _)| first)
}

/// Returns the declaration that a definition contains for the values at a path. An index may follow the name of any
/// field except a field with [`Fold::Count`], because folds collect values in lists.
fn declared<'d>(definition: &'d Definition, path: &str) -> PathDeclaration<'d> {
    let mut names = path.split('.');
    let Some(mut field) = names.next().and_then(|name| definition.field(name)) else {
        return PathDeclaration::Nothing(Some(definition.fields()));
    };
    if field.fold == Fold::Count && path.contains('.') {
        return PathDeclaration::Nothing(None);
    }
    for name in names {
        if is_index(name) && field.fields.field(name).is_none() {
            field = field.items.as_deref().unwrap_or(field);
            continue;
        }
        // After a list, the name of a field refers to the objects in the list.
        while let Some(item) = field.items.as_deref() {
            field = item;
        }
        match (field.fields.field(name), field.field_type) {
            (Some(inner), _) => field = inner,
            (None, FieldType::Object | FieldType::Array) if field.fields.is_empty() => {
                return PathDeclaration::Undescribed;
            }
            (None, FieldType::Object) => return PathDeclaration::Nothing(Some(&field.fields)),
            (None, _) => return PathDeclaration::Nothing(None),
        }
    }
    PathDeclaration::Values(field)
}

/// Returns the kind of the values that states have at `inner`. `inner` is the top-level field `field` or a field inside
/// `field`. If `inner` is an array, returns the kind of its items.
fn kind_of(field: &Field, inner: &Field) -> FieldKind {
    match (inner.field_type, field.fold, &inner.items) {
        (_, Fold::Count, _) | (FieldType::Date, Fold::Sum, _) => FieldKind::Plain,
        (FieldType::Array, _, Some(item)) => kind_of(field, item),
        (FieldType::Date, ..) => FieldKind::Date,
        (FieldType::Decimal, ..) => FieldKind::Decimal,
        (FieldType::Object, ..) if !inner.fields.is_empty() => FieldKind::Objects,
        _ => FieldKind::Plain,
    }
}

/// Returns the reason why no value at `inner` can equal a constant, or `None` if a value may equal the constant.
/// `inner` is the top-level field `field` or a field inside it. If `inner` is an array, its items are compared.
fn refused<'d>(field: &Field, inner: &'d Field, constant: &Value, form: ValueForm) -> Option<ConstantMismatch<'d>> {
    let of_type = |is_possible: bool, field_type| (!is_possible).then_some(ConstantMismatch::Type(field_type));
    let is_text = constant.as_str().is_some();
    let wrong_type = match (inner.field_type, &inner.items) {
        _ if field.fold == Fold::Count => return of_type(constant.is_number(), FieldType::Integer),
        (FieldType::Array, Some(item)) => return refused(field, item, constant, form),
        (FieldType::Array, None) => return None,
        (FieldType::String | FieldType::Reference, _) => of_type(is_text, inner.field_type),
        (FieldType::Number | FieldType::Integer, _) => of_type(constant.is_number(), inner.field_type),
        (FieldType::Boolean, _) => of_type(matches!(constant, Value::Bool(_)), inner.field_type),
        // Constants that are compared with dates of states have already been converted.
        (FieldType::Date, _) if field.fold == Fold::Sum => return None,
        (FieldType::Date, _) => of_type(is_text || form == ValueForm::State && constant.is_number(), inner.field_type),
        (FieldType::Decimal, _) => of_type(is_text || constant.is_number(), inner.field_type),
        (FieldType::Object, _) => Some(ConstantMismatch::Type(inner.field_type)),
    };
    let allowed = inner.allowed.as_deref().filter(|_| is_text && inner.field_type == FieldType::String);
    wrong_type.or_else(|| allowed.filter(|values| !values.contains(constant)).map(ConstantMismatch::Values))
}
