//! Opens a model with barest, once.

use barest::Model;
use barest_peers::first::tell;

fn main() {
    // SAFETY: whoever starts this leaves the file alone meanwhile.
    tell(|path| unsafe { Model::map(path).expect("a model") });
}
