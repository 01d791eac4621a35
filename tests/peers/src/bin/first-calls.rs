//! Does what barest asks of the system to open a model, and nothing else: open, ask for the length, read
//! the header, map.

use barest_peers::first::tell;
use barest_peers::peers::header_and_map;

fn main() {
    tell(header_and_map);
}
