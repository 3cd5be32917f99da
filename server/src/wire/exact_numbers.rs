//! Keeps the text of a number in an appended event if no value of the engine represents the number exactly.

use foldwork_engine::model::event::NewEvent;
use foldwork_engine::model::value::Object;
use foldwork_engine::model::written::{is_likely_in, with_numbers_of};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::http::offloading::offload;

/// The JSON texts of an event's payload and metadata. For a list of events, `events` contains the texts of each event.
#[derive(Deserialize, Default)]
#[serde(default)]
struct EventTexts<'t> {
    #[serde(borrow)]
    payload: Option<&'t RawValue>,
    #[serde(borrow)]
    metadata: Option<&'t RawValue>,
    #[serde(borrow)]
    events: Option<Vec<EventTexts<'t>>>,
}

/// Keeps the exact text of numbers in events. If no value of the engine represents a number exactly, adds the number's
/// text to the event. `text` is the request body from which `events` were parsed.
pub fn keep_numbers(text: &[u8], events: &mut [NewEvent]) {
    if is_likely_in(text) {
        offload(text.len(), || {
            let texts: EventTexts = serde_json::from_slice(text).unwrap_or_default();
            match texts.events {
                Some(texts) => texts.iter().zip(events).for_each(|(texts, event)| texts.add_to(event)),
                None => events.iter_mut().for_each(|event| texts.add_to(event)),
            }
        });
    }
}

impl EventTexts<'_> {
    fn add_to(&self, event: &mut NewEvent) {
        for (object, text) in [(&mut event.payload, self.payload), (&mut event.metadata, self.metadata)] {
            add(object, text);
        }
    }
}

fn add(object: &mut Object, text: Option<&RawValue>) {
    if let Some(text) = text {
        *object = with_numbers_of(std::mem::take(object), text.get());
    }
}
