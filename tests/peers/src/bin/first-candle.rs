//! Opens a model with candle, once.

use barest_peers::first::tell;
use barest_peers::peers::by_candle;

fn main() {
    tell(|path| by_candle(&[path.to_owned()]));
}
