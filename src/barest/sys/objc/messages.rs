//! What is said to which object, and with which types?
//!
//! Each function below sends one message. Its argument and result types are those of the method in
//! Apple's headers: `NSUInteger` is `usize`, `id` and pointers are pointers, `MTLSize` goes by value.
//! A result of more than 16 bytes, which Intel's convention would want another function for, is
//! not among them. That each selector takes as many arguments as it has colons, the compiler
//! checks; a selector that the object does not have ends the program.

use super::{Bool, Id, Selector, runtime};
use std::ffi::{CStr, c_char, c_void};

/// `MTLSize`.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Size {
    pub width: usize,
    pub height: usize,
    pub depth: usize,
}

macro_rules! messages {
    ($($(#[$about:meta])* $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)? = $selector:literal;)*) => {
        $(
            $(#[$about])*
            ///
            /// # Safety
            ///
            /// `to` is nil, which answers 0, or a living object (or class) with such a method; the
            /// arguments are what the method asks for.
            pub unsafe fn $name(to: Id $(, $argument: $type)*) $(-> $result)? {
                static SELECTOR: Selector = Selector::new($selector);
                const ARGUMENTS: &[&str] = &[$(stringify!($argument)),*];
                const _: () = assert!(colons($selector) == ARGUMENTS.len());
                type Method = unsafe extern "C" fn(Id, *const c_void $(, $type)*) $(-> $result)?;
                // SAFETY: both are functions of C, and it is called as the method's own type alone,
                // which is what the runtime asks for.
                let send = unsafe {
                    std::mem::transmute::<unsafe extern "C" fn(), Method>(runtime().objc_msg_send)
                };
                // SAFETY: by this function's contract.
                unsafe { send(to, SELECTOR.get() $(, $argument)*) }
            }
        )*
    };
}

messages! {
    // NSObject.
    /// A new object of a class; the reference is the caller's.
    new() -> Id = c"new";
    responds_to_selector(selector: *const c_void) -> Bool = c"respondsToSelector:";

    // NSArray, NSString, NSError. What they give is lent out, or belongs to them.
    count() -> usize = c"count";
    object_at_index(index: usize) -> Id = c"objectAtIndex:";
    string_with_utf8_string(text: *const c_char) -> Id = c"stringWithUTF8String:";
    utf8_string() -> *const c_char = c"UTF8String";
    localized_description() -> Id = c"localizedDescription";

    // MTLDevice.
    name() -> Id = c"name";
    max_buffer_length() -> usize = c"maxBufferLength";
    recommended_max_working_set_size() -> u64 = c"recommendedMaxWorkingSetSize";
    current_allocated_size() -> usize = c"currentAllocatedSize";
    has_unified_memory() -> Bool = c"hasUnifiedMemory";
    /// A buffer over memory that stays where it is; the reference is the caller's. The block is
    /// copied, and called when the buffer goes away.
    new_buffer_with_bytes_no_copy(
        bytes: *mut c_void,
        length: usize,
        options: usize,
        deallocator: *const c_void
    ) -> Id = c"newBufferWithBytesNoCopy:length:options:deallocator:";
    /// A buffer of zeros; the reference is the caller's.
    new_buffer_with_length(length: usize, options: usize) -> Id = c"newBufferWithLength:options:";
    /// The references of this and of the next four are the caller's; the errors are lent out.
    new_library_with_source(source: Id, options: Id, error: *mut Id) -> Id
        = c"newLibraryWithSource:options:error:";
    new_compute_pipeline_state(function: Id, error: *mut Id) -> Id
        = c"newComputePipelineStateWithFunction:error:";
    new_command_queue() -> Id = c"newCommandQueue";
    new_residency_set(descriptor: Id, error: *mut Id) -> Id = c"newResidencySetWithDescriptor:error:";

    // MTLLibrary.
    new_function_with_name(name: Id) -> Id = c"newFunctionWithName:";

    // MTLBuffer.
    length() -> usize = c"length";
    contents() -> *mut c_void = c"contents";

    // MTLResidencySet; `commit` also of MTLCommandBuffer.
    add_allocation(allocation: Id) = c"addAllocation:";
    commit() = c"commit";
    request_residency() = c"requestResidency";
    end_residency() = c"endResidency";
    remove_all_allocations() = c"removeAllAllocations";

    // MTLCommandQueue, MTLCommandBuffer, MTLComputeCommandEncoder, MTLComputePipelineState. What
    // they give is lent out.
    command_buffer() -> Id = c"commandBuffer";
    compute_command_encoder() -> Id = c"computeCommandEncoder";
    set_compute_pipeline_state(state: Id) = c"setComputePipelineState:";
    set_buffer(buffer: Id, offset: usize, index: usize) = c"setBuffer:offset:atIndex:";
    set_bytes(bytes: *const c_void, length: usize, index: usize) = c"setBytes:length:atIndex:";
    dispatch_threadgroups(groups: Size, threads: Size)
        = c"dispatchThreadgroups:threadsPerThreadgroup:";
    end_encoding() = c"endEncoding";
    wait_until_completed() = c"waitUntilCompleted";
    error() -> Id = c"error";
    max_total_threads_per_threadgroup() -> usize = c"maxTotalThreadsPerThreadgroup";
}

/// Whether an object has a method: younger systems have more of them.
///
/// # Safety
///
/// `to` is nil or a living object.
pub unsafe fn responds(to: Id, selector: &'static CStr) -> bool {
    // SAFETY: every object answers this.
    unsafe { responds_to_selector(to, Selector::new(selector).get()) != 0 }
}

const fn colons(selector: &CStr) -> usize {
    let bytes = selector.to_bytes();
    let (mut at, mut count) = (0, 0);
    while at < bytes.len() {
        if bytes[at] == b':' {
            count += 1;
        }
        at += 1;
    }
    count
}
