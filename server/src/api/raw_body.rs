//! A body of bytes of any kind and length, which is never held whole.

use foldwork_engine::workspace::files::Incoming;
use poem::{Request, RequestBody};
use poem_openapi::registry::{MetaMediaType, MetaRequest, MetaSchema, MetaSchemaRef, Registry};
use poem_openapi::{ApiExtractor, ApiExtractorType, ExtractParamOptions};

use crate::edge::bodies::{self, Failure};

/// The bytes as they come.
pub struct RawBody {
    pub bytes: Incoming,
    /// Why they ended, where they ended badly.
    pub failure: Failure,
    /// How many will come, where the client says so.
    pub announced: Option<u64>,
    pub content_type: Option<String>,
}

impl<'a> ApiExtractor<'a> for RawBody {
    const TYPES: &'static [ApiExtractorType] = &[ApiExtractorType::RequestObject];

    type ParamType = ();
    type ParamRawType = ();

    fn register(_: &mut Registry) {}

    fn request_meta() -> Option<MetaRequest> {
        let schema = MetaSchemaRef::Inline(Box::new(MetaSchema::new_with_format("string", "binary")));
        Some(MetaRequest {
            description: None,
            content: vec![MetaMediaType { content_type: "application/octet-stream", schema }],
            required: true,
        })
    }

    async fn from_request(
        request: &'a Request,
        body: &mut RequestBody,
        _: ExtractParamOptions<Self::ParamType>,
    ) -> poem::Result<Self> {
        let announced = bodies::announced(request);
        let (bytes, failure) = bodies::blocks(request, body.take()?)?;
        Ok(RawBody { bytes, failure, announced, content_type: request.content_type().map(str::to_owned) })
    }
}
