//! Optional fields in the OpenAPI document. A request may send null for a field that it may leave out, and a response
//! sends null for a value that it does not have. Therefore each optional field may be null without an attribute on the
//! field.

use std::collections::HashMap;

use poem::endpoint::BoxEndpoint;
use poem::http::Method;
use poem_openapi::OpenApi;
use poem_openapi::registry::{MetaApi, MetaSchema, MetaSchemaRef, Registry};

/// Wraps operations, and makes the optional fields in their schemas nullable.
///
/// There are four exceptions: a field with a default; a field without a type, which allows null anyway; a field that
/// responses leave out, which has the attribute `read_only`; and a field that requests may leave out but must not send
/// as null, which has the attribute `write_only`. The document does not have these two attributes.
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
