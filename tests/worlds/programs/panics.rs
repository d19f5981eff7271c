// panics COUNT: the same with panics, which catch_unwind() ends.
use std::hint::black_box;
use std::panic::catch_unwind;

#[inline(never)]
fn maybe(i: u32) {
    if black_box(i) % 3 == 0 {
        std::panic::resume_unwind(Box::new(1));
    }
}

#[inline(never)]
#[no_mangle]
pub extern "C-unwind" fn plain(i: u32) -> u32 {
    let text = black_box(String::from("x"));
    maybe(i);
    i + text.len() as u32
}

fn main() {
    let count: u32 = std::env::args().nth(1).unwrap().parse().unwrap();
    let returned = (0..count).filter(|i| catch_unwind(|| plain(*i)).is_ok()).count();
    println!("plain {}", returned);
}
