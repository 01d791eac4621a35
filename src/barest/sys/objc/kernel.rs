//! How is a kernel compiled from its text, and run once?

use super::messages::{self, Size};
use super::{Buffer, Device, Id, Pool, Retained, string, text};
use std::ffi::CStr;
use std::ptr;

/// A compute kernel, ready to run on its device, and a queue to run it in.
pub struct Kernel {
    state: Retained,
    queue: Retained,
}

impl Kernel {
    /// Compiles the function of that name, in Metal's language. Fails with what the compiler says.
    pub fn compile(device: &Device, source: &CStr, name: &CStr) -> Result<Kernel, String> {
        Pool::around(|| {
            let no_memory = || "no memory for a string".to_owned();
            let source = string(source).ok_or_else(no_memory)?;
            let name = string(name).ok_or_else(no_memory)?;
            let mut error = ptr::null_mut();
            // SAFETY: a living device, living strings; nil options are the default ones. The
            // references to library, function, state and queue are ours; errors are lent to the pool.
            unsafe {
                let library = Retained::owned(messages::new_library_with_source(
                    device.id(),
                    source.id(),
                    ptr::null_mut(),
                    &mut error,
                ));
                let library = library.ok_or_else(|| said(error))?;
                let function = messages::new_function_with_name(library.id(), name.id());
                let function = Retained::owned(function)
                    .ok_or_else(|| "the library lacks the function".to_owned())?;
                let state =
                    messages::new_compute_pipeline_state(device.id(), function.id(), &mut error);
                let state = Retained::owned(state).ok_or_else(|| said(error))?;
                let queue = Retained::owned(messages::new_command_queue(device.id()))
                    .ok_or_else(|| "there is no command queue".to_owned())?;
                Ok(Kernel { state, queue })
            }
        })
    }

    /// Threads that one group can have at most.
    pub fn most_threads(&self) -> usize {
        // SAFETY: a living state.
        unsafe { messages::max_total_threads_per_threadgroup(self.state.id()) }
    }

    /// Runs it with these buffers, each from an offset in bytes, as arguments 0 and on, and the
    /// constant behind them; waits for its end. Fails with what the command buffer says.
    ///
    /// # Safety
    ///
    /// With these arguments and that many threads the kernel stays within the buffers, and writes
    /// to none whose bytes are shared.
    pub unsafe fn run(
        &self,
        buffers: &[(&Buffer, usize)],
        constant: &[u8],
        groups: usize,
        threads: usize,
    ) -> Result<(), String> {
        let line = |width| Size { width, height: 1, depth: 1 };
        Pool::around(|| {
            // SAFETY: a living queue; what it lends out is alive within the pool; the buffers are
            // alive, and the command buffer keeps them; the constant is copied. What the kernel does
            // with them is this function's contract.
            unsafe {
                let commands = Retained::shared(messages::command_buffer(self.queue.id()));
                let commands = commands.ok_or_else(|| "there is no command buffer".to_owned())?;
                let encoder = Retained::shared(messages::compute_command_encoder(commands.id()));
                let encoder = encoder.ok_or_else(|| "there is no encoder".to_owned())?;
                messages::set_compute_pipeline_state(encoder.id(), self.state.id());
                for (index, (buffer, offset)) in buffers.iter().enumerate() {
                    messages::set_buffer(encoder.id(), buffer.id(), *offset, index);
                }
                let bytes = constant.as_ptr().cast();
                messages::set_bytes(encoder.id(), bytes, constant.len(), buffers.len());
                messages::dispatch_threadgroups(encoder.id(), line(groups), line(threads));
                messages::end_encoding(encoder.id());
                messages::commit(commands.id());
                messages::wait_until_completed(commands.id());
                match messages::error(commands.id()) {
                    error if error.is_null() => Ok(()),
                    error => Err(said(error)),
                }
            }
        })
    }
}

/// What an error says.
///
/// # Safety
///
/// `error` is nil or an `NSError` that is alive.
unsafe fn said(error: Id) -> String {
    // SAFETY: by this function's contract; a description is lent to the pool around.
    let message = unsafe { text(messages::localized_description(error)) };
    if message.is_empty() { "no reason was given".to_owned() } else { message }
}
