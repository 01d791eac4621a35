//! Which functions of Apple's libraries are called?
//!
//! A table of them. On Apple's systems it has the functions that the program is linked with; the
//! frameworks are named here and nowhere else. Elsewhere, in tests, it is empty until one hands in
//! its own: so nothing is declared that could not be linked, and tests of a copy that brings no
//! runtime link all the same, and find no device.

use super::Id;
use std::ffi::{c_char, c_void};

/// The functions, by their C names, and the address of one datum.
#[derive(Clone, Copy)]
pub struct Runtime {
    /// To be called as nothing but the exact type of a method.
    pub objc_msg_send: unsafe extern "C" fn(),
    /// `SEL sel_registerName(const char *)`.
    pub sel_register_name: unsafe extern "C" fn(*const c_char) -> *const c_void,
    /// `id objc_getClass(const char *)`.
    pub objc_get_class: unsafe extern "C" fn(*const c_char) -> Id,
    /// `id objc_retain(id)`.
    pub objc_retain: unsafe extern "C" fn(Id) -> Id,
    /// `void objc_release(id)`.
    pub objc_release: unsafe extern "C" fn(Id),
    /// `void *objc_autoreleasePoolPush(void)`.
    pub objc_autorelease_pool_push: unsafe extern "C" fn() -> *mut c_void,
    /// `void objc_autoreleasePoolPop(void *)`.
    pub objc_autorelease_pool_pop: unsafe extern "C" fn(*mut c_void),
    /// `id<MTLDevice> MTLCreateSystemDefaultDevice(void)`; a reference that is the caller's, or nil.
    pub create_system_default_device: unsafe extern "C" fn() -> Id,
    /// `NSArray *MTLCopyAllDevices(void)`, the same; `None` on iOS, which has one device.
    pub copy_all_devices: Option<unsafe extern "C" fn() -> Id>,
    /// The address of `_NSConcreteStackBlock`: the class of blocks on the stack.
    pub stack_block: *const c_void,
}

// SAFETY: functions, and an address that is only compared and copied.
unsafe impl Send for Runtime {}
// SAFETY: as above.
unsafe impl Sync for Runtime {}

#[cfg(target_vendor = "apple")]
mod linked {
    use super::{Id, Runtime, c_char, c_void};

    // <objc/message.h>, <objc/runtime.h>; the pools and counts are in clang's description of ARC.
    #[link(name = "objc")]
    unsafe extern "C" {
        fn objc_msgSend();
        fn sel_registerName(name: *const c_char) -> *const c_void;
        fn objc_getClass(name: *const c_char) -> Id;
        fn objc_retain(object: Id) -> Id;
        fn objc_release(object: Id);
        fn objc_autoreleasePoolPush() -> *mut c_void;
        fn objc_autoreleasePoolPop(pool: *mut c_void);
    }

    // <Metal/MTLDevice.h>.
    #[link(name = "Metal", kind = "framework")]
    unsafe extern "C" {
        fn MTLCreateSystemDefaultDevice() -> Id;
        #[cfg(target_os = "macos")]
        fn MTLCopyAllDevices() -> Id;
    }

    // For NSString, NSArray and NSError, by name alone.
    #[link(name = "Foundation", kind = "framework")]
    unsafe extern "C" {}

    // Without it the default device is nil in a program without a window.
    #[cfg(target_os = "macos")]
    #[link(name = "CoreGraphics", kind = "framework")]
    unsafe extern "C" {}

    // <Block.h>, in libSystem.
    unsafe extern "C" {
        static _NSConcreteStackBlock: [*const c_void; 32];
    }

    pub fn runtime() -> Runtime {
        Runtime {
            objc_msg_send: objc_msgSend,
            sel_register_name: sel_registerName,
            objc_get_class: objc_getClass,
            objc_retain,
            objc_release,
            objc_autorelease_pool_push: objc_autoreleasePoolPush,
            objc_autorelease_pool_pop: objc_autoreleasePoolPop,
            create_system_default_device: MTLCreateSystemDefaultDevice,
            #[cfg(target_os = "macos")]
            copy_all_devices: Some(MTLCopyAllDevices),
            #[cfg(not(target_os = "macos"))]
            copy_all_devices: None,
            stack_block: (&raw const _NSConcreteStackBlock).cast(),
        }
    }
}

#[cfg(not(target_vendor = "apple"))]
mod handed_in {
    use super::{Id, Runtime, c_char, c_void};
    use std::sync::OnceLock;

    static RUNTIME: OnceLock<Runtime> = OnceLock::new();

    /// Hands in a runtime, for the rest of the process; false if there was one already.
    pub fn install(runtime: Runtime) -> bool {
        RUNTIME.set(runtime).is_ok()
    }

    pub fn runtime() -> Runtime {
        RUNTIME.get().copied().unwrap_or(NOBODY)
    }

    /// Answers nil to everything: what a system without a device says.
    const NOBODY: Runtime = Runtime {
        objc_msg_send: nothing,
        sel_register_name: no_selector,
        objc_get_class: no_class,
        objc_retain: same,
        objc_release: no_release,
        objc_autorelease_pool_push: no_pool,
        objc_autorelease_pool_pop: no_release,
        create_system_default_device: no_pool,
        copy_all_devices: Some(no_pool),
        stack_block: std::ptr::null(),
    };

    extern "C" fn nothing() {}

    extern "C" fn no_selector(_: *const c_char) -> *const c_void {
        std::ptr::null()
    }

    extern "C" fn no_class(_: *const c_char) -> Id {
        std::ptr::null_mut()
    }

    extern "C" fn same(object: Id) -> Id {
        object
    }

    extern "C" fn no_release(_: Id) {}

    extern "C" fn no_pool() -> *mut c_void {
        std::ptr::null_mut()
    }
}

#[cfg(not(target_vendor = "apple"))]
pub use handed_in::{install, runtime};
#[cfg(target_vendor = "apple")]
pub use linked::runtime;
