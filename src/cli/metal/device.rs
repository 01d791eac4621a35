//! What does the device say?
