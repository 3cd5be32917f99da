//! A request body of any type, which the handler reads as a stream.

use poem::{Request, RequestBody};
use poem_openapi::registry::{MetaMediaType, MetaRequest, MetaSchema, MetaSchemaRef, Registry};
use poem_openapi::{ApiExtractor, ApiExtractorType, ExtractParamOptions};

use crate::http::bodies::UploadBody;

/// The raw bytes of a request body.
pub struct RawBody {
    pub upload: UploadBody,
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
        let upload = UploadBody::new(request, body.take()?);
        Ok(RawBody { upload, content_type: request.content_type().map(str::to_owned) })
    }
}
