//! Faults of requests that are found before the caller is authenticated. The guard of the operation reports the fault
//! of a request only to a caller with access. A caller without access gets the error about the missing access instead.

use std::sync::Arc;

use parking_lot::Mutex;
use poem::{Error, Request, Result};

/// The fault of a request, which is attached to the request as data. Clones share the fault.
#[derive(Clone)]
pub struct RequestFault(Arc<Mutex<Option<Error>>>);

impl RequestFault {
    /// Attaches a fault to a request. The operation must have a guard, because the guard reports the fault.
    pub fn attach(request: &mut Request, fault: Error) {
        request.set_data(RequestFault(Arc::new(Mutex::new(Some(fault)))));
    }

    /// Fails with the fault that is attached to a request, if there is one. Removes the fault from the request.
    pub fn report(request: &Request) -> Result<()> {
        let fault = request.data::<RequestFault>().and_then(|attached| attached.0.lock().take());
        fault.map_or(Ok(()), Err)
    }
}
