//! The outgoing messages of one channel on one socket, queued in the format of the protocol.

use std::sync::Arc;

use serde_json::json;

use super::broadcast::Broadcast;
use super::frame::{MessageHead, ProtocolVersion, write_text};
use super::queue::{OutgoingMessage, Queue};

const REPLY: &str = "phx_reply";
const CLOSE: &str = "phx_close";

/// Adds the messages of one channel to the queue of one socket.
pub struct ChannelLine {
    pub queue: Arc<Queue>,
    pub version: ProtocolVersion,
    /// The channel's topic, as the client wrote it.
    pub topic: Arc<str>,
    /// The reference of the client's join message.
    pub join_ref: Option<Arc<str>>,
}

impl ChannelLine {
    /// Queues a message that is shared by many sockets.
    pub fn broadcast(&self, message: Arc<Broadcast>) {
        self.queue.push(OutgoingMessage::Broadcast { topic: self.topic.clone(), message });
    }

    /// Queues a positive reply to the message with this reference. A message without a reference gets no reply.
    pub fn ok(&self, reference: Option<&str>) {
        self.reply(reference, "ok", &json!({}));
    }

    pub fn error(&self, reference: Option<&str>, reason: &str) {
        self.reply(reference, "error", &json!({"reason": reason}));
    }

    pub fn reply(&self, reference: Option<&str>, status: &str, response: &serde_json::Value) {
        if reference.is_some() {
            let payload = json!({"status": status, "response": response});
            self.send(self.join_ref.as_deref(), reference, REPLY, &payload.to_string());
        }
    }

    /// Queues a reply to a heartbeat. A heartbeat without a reference gets a reply as well.
    pub fn answer_heartbeat(&self, reference: Option<&str>) {
        self.send(None, reference, REPLY, r#"{"status":"ok","response":{}}"#);
    }

    /// Queues the presence data of the channel. `state` is JSON.
    pub fn presence_state(&self, state: &str) {
        self.send(self.join_ref.as_deref(), None, "presence_state", state);
    }

    /// Queues the message that closes the channel. A client does not rejoin after this message.
    pub fn close(&self) {
        self.send(self.join_ref.as_deref(), self.join_ref.as_deref(), CLOSE, "{}");
    }

    /// Queues a message with the reason, and then closes the channel.
    pub fn end(&self, reason: &str) {
        let channel = self.topic.strip_prefix("realtime:").unwrap_or(&self.topic);
        let payload = json!({"extension": "system", "status": "error", "message": reason, "channel": channel});
        self.send(self.join_ref.as_deref(), None, "system", &payload.to_string());
        self.close();
    }

    fn send(&self, join_ref: Option<&str>, reference: Option<&str>, event: &str, payload: &str) {
        let head = MessageHead { join_ref, reference, topic: &self.topic, event };
        self.queue.push(OutgoingMessage::Frame(write_text(self.version, head, payload)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::realtime::queue::QueueBound;

    fn frames(version: ProtocolVersion, with_line: impl Fn(&ChannelLine)) -> Vec<String> {
        let queue = Arc::new(Queue::new(QueueBound { messages: 10, bytes: 10_000 }));
        let topic = "realtime:agent:a".into();
        with_line(&ChannelLine { queue: queue.clone(), version, topic, join_ref: Some("1".into()) });
        let frames = std::iter::from_fn(|| queue.pop());
        frames.map(|out| if let OutgoingMessage::Frame(text) = out { text } else { String::new() }).collect()
    }

    #[test]
    fn a_channel_line_writes_the_messages_of_the_protocol() {
        let topic = r#""realtime:agent:a""#;
        let two = |say: fn(&ChannelLine)| frames(ProtocolVersion::Two, say);
        assert_eq!(
            two(|line| line.ok(Some("4"))),
            [format!(r#"["1","4",{topic},"phx_reply",{{"status":"ok","response":{{}}}}]"#)]
        );
        assert_eq!(two(|line| line.ok(None)), [""; 0]);
        assert_eq!(
            two(|line| line.error(Some("4"), "no")),
            [format!(r#"["1","4",{topic},"phx_reply",{{"status":"error","response":{{"reason":"no"}}}}]"#)]
        );
        assert_eq!(
            two(|line| line.end("gone")),
            [
                format!(
                    r#"["1",null,{topic},"system",{{"extension":"system","status":"error","message":"gone","channel":"agent:a"}}]"#
                ),
                format!(r#"["1","1",{topic},"phx_close",{{}}]"#)
            ]
        );
        assert_eq!(two(|line| line.presence_state("{}")), [format!(r#"["1",null,{topic},"presence_state",{{}}]"#)]);
        assert_eq!(
            frames(ProtocolVersion::One, |line| line.close()),
            [format!(r#"{{"topic":{topic},"event":"phx_close","payload":{{}},"ref":"1"}}"#)]
        );
    }
}
