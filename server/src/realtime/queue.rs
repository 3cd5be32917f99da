//! The queue of messages to a socket. If the queue exceeds a limit, its messages are dropped and the socket is closed.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::broadcast::Broadcast;

/// A message that waits to be sent to a socket.
#[derive(Debug)]
pub enum OutgoingMessage {
    /// A serialized frame for one socket.
    Frame(String),
    /// A message that many sockets share, with the topic under which this socket joined the channel.
    Broadcast { topic: Arc<str>, message: Arc<Broadcast> },
}

impl OutgoingMessage {
    fn size_bytes(&self) -> usize {
        match self {
            OutgoingMessage::Frame(text) => text.len(),
            OutgoingMessage::Broadcast { message, .. } => message.size_bytes(),
        }
    }
}

/// The maximum number and size of the messages in a queue.
#[derive(Debug, Clone, Copy)]
pub struct QueueBound {
    pub messages: usize,
    pub bytes: usize,
}

/// The messages that wait to be sent to a socket.
pub struct Queue {
    bound: QueueBound,
    waiting: Mutex<QueuedMessages>,
    /// The signal that wakes the socket's task after a message was added or the queue has overflowed.
    filled: Notify,
    /// The signal that wakes the socket's task after the queue has overflowed. While the task writes, the task waits
    /// for this signal and not for `filled`, so that the wait does not consume the signal for an added message.
    overflow: Notify,
    /// The signal that wakes tasks that wait for capacity in the queue.
    emptied: Notify,
    /// Whether the peer has sent a binary broadcast. If `false`, the peer receives no binary frames.
    pub takes_bytes: AtomicBool,
}

#[derive(Default)]
struct QueuedMessages {
    messages: VecDeque<OutgoingMessage>,
    bytes: usize,
    has_overflowed: bool,
}

impl Queue {
    pub fn new(bound: QueueBound) -> Queue {
        Queue {
            bound,
            waiting: Mutex::default(),
            filled: Notify::new(),
            overflow: Notify::new(),
            emptied: Notify::new(),
            takes_bytes: AtomicBool::new(false),
        }
    }

    /// Adds a message. If a limit is exceeded, the queue overflows: all messages are dropped, and later messages are
    /// not accepted.
    pub fn push(&self, outgoing: OutgoingMessage) {
        let mut waiting = self.waiting.lock();
        if waiting.has_overflowed {
            return;
        }
        waiting.bytes += outgoing.size_bytes();
        waiting.messages.push_back(outgoing);
        if waiting.messages.len() > self.bound.messages || waiting.bytes > self.bound.bytes {
            *waiting = QueuedMessages { has_overflowed: true, ..QueuedMessages::default() };
            self.emptied.notify_waiters();
            self.overflow.notify_one();
        }
        drop(waiting);
        self.filled.notify_one();
    }

    /// Removes and returns the oldest message.
    pub fn pop(&self) -> Option<OutgoingMessage> {
        let mut waiting = self.waiting.lock();
        let outgoing = waiting.messages.pop_front()?;
        waiting.bytes -= outgoing.size_bytes();
        if waiting.messages.is_empty() && waiting.messages.capacity() > 64 {
            // Frees the memory of an empty queue, so that idle sockets hold no large buffers.
            waiting.messages = VecDeque::new();
        }
        let has_capacity = self.has_capacity(&waiting);
        drop(waiting);
        if has_capacity {
            self.emptied.notify_waiters();
        }
        Some(outgoing)
    }

    pub fn has_overflowed(&self) -> bool {
        self.waiting.lock().has_overflowed
    }

    /// Waits until a message has been added or the queue has overflowed. The message may already have been removed,
    /// because the signal of a message stays set if nothing waits for the signal.
    pub async fn filled(&self) {
        self.filled.notified().await;
    }

    /// Waits until the queue has overflowed.
    pub async fn overflowed(&self) {
        while !self.has_overflowed() {
            self.overflow.notified().await;
        }
    }

    /// Waits until at most a quarter of the queue is full. If a message can wait, its sender calls this function before
    /// it adds the message. Waits forever after an overflow.
    pub async fn capacity(&self) {
        loop {
            let emptied = self.emptied.notified();
            {
                let waiting = self.waiting.lock();
                if self.has_capacity(&waiting) && !waiting.has_overflowed {
                    return;
                }
            }
            emptied.await;
        }
    }

    /// Returns whether at most a quarter of the queue is full. Messages that can wait are added only in this case,
    /// because the other three quarters are reserved for messages that cannot wait.
    fn has_capacity(&self, waiting: &QueuedMessages) -> bool {
        waiting.messages.len() <= self.bound.messages / 4 && waiting.bytes <= self.bound.bytes / 4
    }

    /// Records that the peer has sent a binary broadcast, and therefore supports binary frames.
    pub fn peer_sent_bytes(&self) {
        self.takes_bytes.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures_util::poll;

    use super::*;

    fn frame(bytes: usize) -> OutgoingMessage {
        OutgoingMessage::Frame("x".repeat(bytes))
    }

    #[tokio::test]
    async fn an_overflowing_queue_is_emptied_and_stays_empty() {
        for (messages, bytes) in [(3, 1_000), (1_000, 30)] {
            let queue = Queue::new(QueueBound { messages, bytes });
            (0..3).for_each(|_| queue.push(frame(10)));
            assert!(!queue.has_overflowed());
            queue.push(frame(10));
            assert!(queue.has_overflowed() && queue.pop().is_none());
            queue.overflowed().await;
            (0..1_000).for_each(|_| queue.push(frame(10)));
            assert!(queue.waiting.lock().messages.is_empty());
            assert!(poll!(pin!(queue.capacity())).is_pending());
        }
    }

    #[tokio::test]
    async fn a_wait_for_an_overflow_does_not_consume_the_signal_for_a_message() {
        let queue = Queue::new(QueueBound { messages: 8, bytes: 1_000 });
        let mut overflowed = pin!(queue.overflowed());
        assert!(poll!(overflowed.as_mut()).is_pending());
        queue.push(frame(1));
        assert!(poll!(overflowed.as_mut()).is_pending());
        assert!(poll!(pin!(queue.filled())).is_ready());
        (0..9).for_each(|_| queue.push(frame(1)));
        assert!(poll!(overflowed).is_ready());
    }

    #[tokio::test]
    async fn a_wait_for_capacity_ends_when_at_most_a_quarter_of_the_queue_is_full() {
        let queue = Queue::new(QueueBound { messages: 8, bytes: 1_000 });
        (0..4).for_each(|_| queue.push(frame(1)));
        let mut capacity = pin!(queue.capacity());
        assert!(poll!(capacity.as_mut()).is_pending());
        queue.pop();
        assert!(poll!(capacity.as_mut()).is_pending());
        queue.pop();
        capacity.await;
    }

    #[tokio::test]
    async fn a_queue_returns_frames_in_order_and_frees_its_memory() {
        let queue = Queue::new(QueueBound { messages: 1_000, bytes: 1_000_000 });
        (1..=100).for_each(|length| queue.push(frame(length)));
        queue.filled().await;
        let lengths: Vec<usize> = std::iter::from_fn(|| queue.pop()).map(|out| out.size_bytes()).collect();
        assert_eq!(lengths, (1..=100).collect::<Vec<_>>());
        let waiting = queue.waiting.lock();
        assert_eq!((waiting.bytes, waiting.messages.capacity()), (0, 0));
    }
}
