//! Declares responses that differ only in their bodies and descriptions. The OpenAPI document has a separate
//! description of each of these responses.

/// Declares the response of an operation that succeeds without a body.
macro_rules! no_content {
    ($name:ident: $about:literal) => {
        #[derive(poem_openapi::ApiResponse)]
        enum $name {
            #[doc = $about]
            #[oai(status = 204)]
            Done,
        }
    };
}
pub(crate) use no_content;

/// Declares a response that contains a resource after a change, and the resource's entity tag.
macro_rules! tagged {
    ($visibility:vis $name:ident of $body:ident: $about:literal) => {
        #[derive(poem_openapi::ApiResponse)]
        $visibility enum $name {
            #[doc = $about]
            #[oai(status = 200)]
            Done($crate::wire::body::JsonResponse<$body>, #[oai(header = "ETag")] String),
        }
    };
}
pub(crate) use tagged;

/// Declares a response that contains a resource. If the client already has the current version, the response contains
/// only the entity tag.
macro_rules! revalidated {
    ($name:ident of $body:ident: $about:literal) => {
        #[derive(poem_openapi::ApiResponse)]
        enum $name {
            #[doc = $about]
            #[oai(status = 200)]
            Found($crate::wire::body::JsonResponse<$body>, #[oai(header = "ETag")] String),
            /// The client has the current version.
            #[oai(status = 304)]
            Known(#[oai(header = "ETag")] String),
        }
    };
}
pub(crate) use revalidated;
