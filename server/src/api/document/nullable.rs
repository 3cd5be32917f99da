//! Makes optional fields nullable in the OpenAPI document, so that the fields need no attribute. A request may send
//! null for an optional field instead of omitting the field, and a response sends null for a field without a value.

use std::collections::HashMap;

use poem::endpoint::BoxEndpoint;
use poem::http::Method;
use poem_openapi::OpenApi;
use poem_openapi::registry::{MetaApi, MetaSchema, MetaSchemaRef, Registry};

/// Wraps operations, and makes the optional fields in their schemas nullable.
///
/// There are four exceptions:
/// - A field with a default.
/// - A field without a type. Such a field allows null anyway.
/// - A field with the attribute `read_only`. Responses omit such a field instead of sending null.
/// - A field with the attribute `write_only`. Requests may omit such a field, but must not send null.
///
/// The document does not contain the attributes `read_only` and `write_only`.
pub struct NullableFields<A>(pub A);

impl<A: OpenApi> OpenApi for NullableFields<A> {
    fn meta() -> Vec<MetaApi> {
        A::meta()
    }

    fn register(registry: &mut Registry) {
        A::register(registry);
        for schema in registry.schemas.values_mut() {
            let optional = schema.properties.iter_mut().filter(|(name, _)| !schema.required.contains(name));
            optional.for_each(|(_, field)| complete(field));
        }
    }

    fn add_routes(self, routes: &mut HashMap<String, HashMap<Method, BoxEndpoint<'static>>>) {
        self.0.add_routes(routes);
    }
}

fn complete(field: &mut MetaSchemaRef) {
    if let MetaSchemaRef::Inline(schema) = field {
        let parts = [&schema.all_of, &schema.one_of, &schema.any_of];
        let has_type = !schema.ty.is_empty() || parts.iter().any(|schemas| !schemas.is_empty());
        schema.nullable |= has_type && !schema.read_only && !schema.write_only && schema.default.is_none();
        (schema.read_only, schema.write_only) = (false, false);
    } else {
        *field = field.clone().merge(MetaSchema { nullable: true, ..MetaSchema::ANY });
    }
}
