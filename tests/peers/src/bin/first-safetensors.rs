//! Opens a model with memmap2 and safetensors, once.

use barest_peers::first::tell;
use barest_peers::peers::{by_safetensors, map};

fn main() {
    tell(|path| {
        // What is measured ends with the tensors, which borrow from the map.
        let map = Box::leak(Box::new(map(path)));
        by_safetensors(map)
    });
}
