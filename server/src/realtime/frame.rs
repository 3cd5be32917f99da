//! Serializes and parses text frames and binary frames of the Phoenix protocol, for both versions of the serializer.

use serde_json::value::RawValue;

/// The version of a client's serializer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProtocolVersion {
    /// Version one: messages are JSON objects.
    One,
    /// Version two: messages are JSON arrays or binary frames.
    Two,
}

impl ProtocolVersion {
    /// Returns the serializer version for a `vsn` parameter, or `None` if the version is not supported. Without the
    /// parameter, returns version one.
    pub fn parse(vsn: Option<&str>) -> Option<ProtocolVersion> {
        let Some(vsn) = vsn else { return Some(ProtocolVersion::One) };
        let (major, rest) = vsn.split_once('.')?;
        let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        // Ignores the minor and the patch version, which are compatible by convention.
        let is_version = rest.split('.').count() <= 2 && rest.split('.').all(is_number);
        match major {
            "1" if is_version => Some(ProtocolVersion::One),
            "2" if is_version => Some(ProtocolVersion::Two),
            _ => None,
        }
    }
}

/// A message from a client.
#[derive(Debug)]
pub struct ClientMessage {
    pub join_ref: Option<String>,
    pub reference: Option<String>,
    pub topic: String,
    pub event: String,
    pub payload: MessagePayload,
}

/// The payload of a message.
#[derive(Debug)]
pub enum MessagePayload {
    Json(Box<RawValue>),
    /// A message to the other clients of the channel, with the name of its event and its payload.
    User {
        event: String,
        body: BroadcastBody,
    },
    /// A binary push, whose bytes are ignored.
    Bytes,
}

/// The payload of a message to the other clients of the channel.
#[derive(Debug)]
pub enum BroadcastBody {
    Json(Box<RawValue>),
    Bytes(Vec<u8>),
}

/// The name of the protocol's event for messages between clients and for deliveries of the server.
pub const BROADCAST: &str = "broadcast";

/// The first byte of a binary frame with a push.
const PUSH: u8 = 0;
/// The first byte of a binary frame in which a client sends a broadcast.
const USER_BROADCAST_PUSH: u8 = 3;
/// The first byte of a binary frame in which the server sends a client's broadcast.
const USER_BROADCAST: u8 = 4;
/// The byte that marks the payload of a broadcast as raw bytes.
const RAW: u8 = 0;
/// The byte that marks the payload of a broadcast as JSON.
const JSON: u8 = 1;

/// The maximum length in bytes of each part of a message's head. A binary frame cannot contain a longer part, because
/// the frame encodes the length of a part in one byte. The limit also saves memory, because the server stores some
/// parts until the socket leaves the channel.
const MAX_PART: usize = u8::MAX as usize;

type Array = (Option<String>, Option<String>, String, String, Box<RawValue>);

#[derive(serde::Deserialize)]
struct JsonMessage {
    topic: String,
    event: String,
    payload: Option<Box<RawValue>>,
    #[serde(rename = "ref", default)]
    reference: Option<String>,
    join_ref: Option<String>,
}

/// Parses a text frame. Returns `None` if the frame is invalid, or if a part of its head is too long.
pub fn read_text(version: ProtocolVersion, text: &str) -> Option<ClientMessage> {
    let message = parsed(version, text)?;
    let ClientMessage { join_ref, reference, topic, event, .. } = &message;
    let references = join_ref.iter().chain(reference);
    let is_short = references.chain([topic, event]).all(|part| part.len() <= MAX_PART);
    is_short.then_some(message)
}

fn parsed(version: ProtocolVersion, text: &str) -> Option<ClientMessage> {
    match version {
        ProtocolVersion::Two => {
            let (join_ref, reference, topic, event, payload): Array = serde_json::from_str(text).ok()?;
            Some(ClientMessage { join_ref, reference, topic, event, payload: MessagePayload::Json(payload) })
        }
        // Rejects arrays, because serde would read an array's items as the fields of a struct.
        ProtocolVersion::One if !text.trim_start().starts_with('{') => None,
        ProtocolVersion::One => {
            let JsonMessage { topic, event, payload, reference, join_ref } = serde_json::from_str(text).ok()?;
            let payload = MessagePayload::Json(payload.unwrap_or_else(|| RawValue::NULL.to_owned()));
            Some(ClientMessage { join_ref, reference, topic, event, payload })
        }
    }
}

/// Parses a binary frame. Returns `None` if the frame is invalid, or if the client's serializer is version one.
pub fn read_bytes(version: ProtocolVersion, bytes: &[u8]) -> Option<ClientMessage> {
    if version == ProtocolVersion::One {
        return None;
    }
    let ([join_ref, reference, topic, event], payload) = match *bytes.first()? {
        PUSH => (parts::<4>(bytes, 5)?.0, MessagePayload::Bytes),
        USER_BROADCAST_PUSH => {
            let encoding = *bytes.get(6)?;
            let ([join_ref, reference, topic, event, _], data) = parts::<5>(bytes, 7)?;
            let body = match encoding {
                JSON => BroadcastBody::Json(serde_json::from_slice(data).ok()?),
                RAW => BroadcastBody::Bytes(data.to_vec()),
                _ => return None,
            };
            ([join_ref, reference, topic, BROADCAST], MessagePayload::User { event: event.into(), body })
        }
        _ => return None,
    };
    let (join_ref, reference) = (non_empty(join_ref), non_empty(reference));
    Some(ClientMessage { join_ref, reference, topic: topic.into(), event: event.into(), payload })
}

/// Returns the `N` strings in the head of a binary frame, and the bytes after these strings. The lengths of the strings
/// follow the frame's first byte, and the strings begin at offset `head`.
fn parts<const N: usize>(bytes: &[u8], head: usize) -> Option<([&str; N], &[u8])> {
    let lengths = bytes.get(1..=N)?;
    let mut rest = bytes.get(head..)?;
    let mut texts = [""; N];
    for (text, length) in texts.iter_mut().zip(lengths) {
        let (part, behind) = rest.split_at_checked(usize::from(*length))?;
        *text = std::str::from_utf8(part).ok()?;
        rest = behind;
    }
    Some((texts, rest))
}

/// Returns the reference in a client's message, or `None` if the reference is empty.
fn non_empty(reference: &str) -> Option<String> {
    (!reference.is_empty()).then(|| reference.to_owned())
}

/// The fields of a message other than its payload.
#[derive(Debug, Clone, Copy)]
pub struct MessageHead<'a> {
    pub join_ref: Option<&'a str>,
    pub reference: Option<&'a str>,
    pub topic: &'a str,
    pub event: &'a str,
}

/// Serializes a message. `payload` is JSON.
pub fn write_text(version: ProtocolVersion, head: MessageHead<'_>, payload: &str) -> String {
    let MessageHead { join_ref, reference, topic, event } = head;
    // Serializing a string or `None` cannot fail.
    let json = |text: Option<&str>| serde_json::to_string(&text).unwrap_or_default();
    let (reference, topic, event) = (json(reference), json(Some(topic)), json(Some(event)));
    match version {
        ProtocolVersion::Two => format!("[{},{reference},{topic},{event},{payload}]", json(join_ref)),
        ProtocolVersion::One => {
            format!(r#"{{"topic":{topic},"event":{event},"payload":{payload},"ref":{reference}}}"#)
        }
    }
}

/// Serializes a client's bytes as a binary broadcast frame, the only kind of binary frame that clients support. `meta`
/// is JSON. Returns `None` if the topic, the event or `meta` is too long.
pub fn write_bytes(topic: &str, event: &str, meta: &str, data: &[u8]) -> Option<Vec<u8>> {
    let length = |text: &str| u8::try_from(text.len()).ok();
    let head = [USER_BROADCAST, length(topic)?, length(event)?, length(meta)?, RAW];
    let mut frame = Vec::with_capacity(head.len() + topic.len() + event.len() + meta.len() + data.len());
    frame.extend(head);
    for text in [topic, event, meta] {
        frame.extend(text.as_bytes());
    }
    frame.extend(data);
    Some(frame)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: MessageHead<'_> =
        MessageHead { join_ref: Some("3"), reference: Some("4"), topic: "realtime:agent:a", event: "phx_reply" };

    fn json(inbound: &ClientMessage) -> &str {
        match &inbound.payload {
            MessagePayload::Json(json) | MessagePayload::User { body: BroadcastBody::Json(json), .. } => json.get(),
            other => panic!("{other:?}"),
        }
    }

    proptest::proptest! {
        #[test]
        fn written_text_frames_are_read_back(
            join_ref in proptest::option::of(".{0,20}"), reference in proptest::option::of(".{0,20}"),
            topic in ".{0,40}", event in ".{0,40}", payload in ".{0,40}",
        ) {
            let payload = serde_json::json!({ "said": payload }).to_string();
            for version in [ProtocolVersion::One, ProtocolVersion::Two] {
                let head = MessageHead {
                    join_ref: join_ref.as_deref(),
                    reference: reference.as_deref(),
                    topic: &topic,
                    event: &event,
                };
                let read = read_text(version, &write_text(version, head, &payload)).expect("a message");
                // Version one of the serializer has no join reference.
                let join_ref = join_ref.clone().filter(|_| version == ProtocolVersion::Two);
                assert_eq!((&read.join_ref, &read.reference), (&join_ref, &reference));
                assert_eq!((&read.topic, &read.event, json(&read)), (&topic, &event, payload.as_str()));
            }
        }

        #[test]
        fn a_binary_broadcast_of_a_client_is_read(
            refs in "[0-9]{0,5}", topic in ".{0,50}", event in ".{0,50}", data: Vec<u8>,
        ) {
            let lengths = [refs.len(), refs.len(), topic.len(), event.len(), 0].map(|length| length as u8);
            let head: Vec<u8> = [3].into_iter().chain(lengths).chain([0]).collect();
            let frame = [&head, refs.as_bytes(), refs.as_bytes(), topic.as_bytes(), event.as_bytes(), &data].concat();
            let read = read_bytes(ProtocolVersion::Two, &frame).expect("a message");
            assert_eq!((&read.topic, read.reference.unwrap_or_default()), (&topic, refs));
            assert!(matches!(
                read.payload,
                MessagePayload::User { event: read_event, body: BroadcastBody::Bytes(bytes) }
                    if read_event == event && bytes == data
            ));
        }

        #[test]
        fn reading_arbitrary_input_does_not_panic(bytes: Vec<u8>, text in ".{0,200}") {
            let _ = read_bytes(ProtocolVersion::Two, &bytes);
            let _ = (read_text(ProtocolVersion::Two, &text), read_text(ProtocolVersion::One, &text));
        }
    }

    #[test]
    fn protocol_versions_are_parsed() {
        for (vsn, version) in
            [(None, ProtocolVersion::One), (Some("1.0.0"), ProtocolVersion::One), (Some("2.0.0"), ProtocolVersion::Two)]
        {
            assert_eq!(ProtocolVersion::parse(vsn), Some(version));
        }
        assert_eq!(ProtocolVersion::parse(Some("2.1.7")), Some(ProtocolVersion::Two));
        for vsn in ["", "1", "3.0.0", "0.9.0", "two", "2.x", "2.0.0.0", "2..0", "2.0.0-rc"] {
            assert_eq!(ProtocolVersion::parse(Some(vsn)), None, "{vsn}");
        }
    }

    #[test]
    fn messages_of_both_serializers_are_read() {
        let two = read_text(ProtocolVersion::Two, r#"["1","2","t","phx_join",{"config":{}}]"#).expect("a message");
        let one = r#"{"topic":"t","event":"phx_join","payload":{"config":{}},"ref":"2","join_ref":"1","more":1}"#;
        let one = read_text(ProtocolVersion::One, one).expect("a message");
        for read in [two, one] {
            assert_eq!((read.join_ref.as_deref(), read.reference.as_deref()), (Some("1"), Some("2")));
            assert_eq!((&*read.topic, &*read.event, json(&read)), ("t", "phx_join", r#"{"config":{}}"#));
        }
        let without =
            read_text(ProtocolVersion::One, r#"{"topic":"phoenix","event":"heartbeat","payload":{},"ref":null}"#);
        assert!(without.is_some_and(|read| read.reference.is_none() && read.join_ref.is_none()));
    }

    #[test]
    fn messages_of_both_serializers_are_written() {
        assert_eq!(
            write_text(ProtocolVersion::Two, HEAD, r#"{"status":"ok"}"#),
            r#"["3","4","realtime:agent:a","phx_reply",{"status":"ok"}]"#
        );
        let nothing = MessageHead { join_ref: None, reference: None, topic: "a\"b", event: "e" };
        assert_eq!(
            write_text(ProtocolVersion::One, nothing, "{}"),
            r#"{"topic":"a\"b","event":"e","payload":{},"ref":null}"#
        );
        assert_eq!(write_text(ProtocolVersion::Two, nothing, "{}"), r#"[null,null,"a\"b","e",{}]"#);
    }

    #[test]
    fn the_encoding_of_a_binary_broadcast_selects_json_or_bytes() {
        let push = |encoding: u8, data: &[u8]| {
            let mut frame = vec![3, 1, 2, 3, 4, 2, encoding];
            frame.extend(b"112tttnote{}");
            frame.extend(data);
            frame
        };
        let read = read_bytes(ProtocolVersion::Two, &push(1, br#"{"n":1}"#)).expect("a message");
        assert_eq!((read.join_ref.as_deref(), read.reference.as_deref()), (Some("1"), Some("12")));
        assert_eq!((&*read.topic, &*read.event, json(&read)), ("ttt", "broadcast", r#"{"n":1}"#));
        let raw = read_bytes(ProtocolVersion::Two, &push(0, &[0, 255])).expect("a message").payload;
        assert!(matches!(
            raw,
            MessagePayload::User { event, body: BroadcastBody::Bytes(bytes) } if event == "note" && bytes == [0, 255]
        ));
        assert!(
            read_bytes(ProtocolVersion::One, &push(1, b"{}")).is_none(),
            "the first serializer has no binary frames"
        );
        assert!(read_bytes(ProtocolVersion::Two, &push(7, b"{}")).is_none());
        assert!(read_bytes(ProtocolVersion::Two, &push(1, b"{")).is_none());
    }

    #[test]
    fn parts_of_a_text_frame_have_the_length_limit_of_a_binary_frame() {
        for (length, is_read) in [(MAX_PART, true), (MAX_PART + 1, false)] {
            let part = "x".repeat(length);
            for place in 0..4 {
                let mut parts = ["1", "2", "t", "e"];
                parts[place] = &part;
                let [join_ref, reference, topic, event] = parts;
                let two = serde_json::json!([join_ref, reference, topic, event, {}]).to_string();
                assert_eq!(read_text(ProtocolVersion::Two, &two).is_some(), is_read, "{two}");
                let one = serde_json::json!({"join_ref": join_ref, "ref": reference, "topic": topic, "event": event});
                assert_eq!(read_text(ProtocolVersion::One, &one.to_string()).is_some(), is_read, "{one}");
            }
        }
    }

    #[test]
    fn a_plain_binary_push_is_read() {
        let mut frame = vec![0, 1, 1, 2, 4];
        frame.extend(b"12ttpush");
        frame.extend([1, 2, 3]);
        let read = read_bytes(ProtocolVersion::Two, &frame).expect("a message");
        assert_eq!((&*read.topic, &*read.event), ("tt", "push"));
        assert!(matches!(read.payload, MessagePayload::Bytes));
    }

    #[test]
    fn a_binary_broadcast_is_written_in_the_format_that_clients_read() {
        assert_eq!(write_bytes("tt", "e", "{}", &[9]), Some(vec![4, 2, 1, 2, 0, b't', b't', b'e', b'{', b'}', 9]));
        assert_eq!(write_bytes(&"t".repeat(256), "e", "", &[]), None);
    }

    #[test]
    fn invalid_messages_are_rejected() {
        for text in ["", "null", "[]", "{}", r#"["1","2","t","e"]"#, r#"[1,2,"t","e",{}]"#, r#"["1","2",3,"e",{}]"#] {
            assert!(read_text(ProtocolVersion::Two, text).is_none(), "{text}");
            assert!(read_text(ProtocolVersion::One, text).is_none(), "{text}");
        }
        assert!(read_text(ProtocolVersion::Two, &"[".repeat(100_000)).is_none());
        for bytes in
            [&[][..], &[3], &[3, 255, 255, 255, 255, 255, 1], &[1, 0, 0, 0], &[0, 1, 1, 1, 1, 0xff, 0xff, 0xff, 0xff]]
        {
            assert!(read_bytes(ProtocolVersion::Two, bytes).is_none(), "{bytes:?}");
        }
    }
}
