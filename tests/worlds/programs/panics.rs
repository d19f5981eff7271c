// panics COUNT: the same with panics, which catch_unwind() ends.
use std::panic::catch_unwind;

// Keeps the compiler from knowing a value.
fn black_box<T: Copy>(value: T) -> T {
    unsafe { std::ptr::read_volatile(&value) }
}

#[inline(never)]
fn maybe(i: u32) {
    if black_box(i) % 3 == 0 {
        std::panic::resume_unwind(Box::new(1));
    }
}

#[inline(never)]
#[no_mangle]
pub fn plain(i: u32) -> u32 {
    let text = String::from("x").repeat(black_box(1));
    maybe(i);
    i + text.len() as u32
}

fn main() {
    let count: u32 = std::env::args().nth(1).unwrap().parse().unwrap();
    let returned = (0..count).filter(|i| catch_unwind(|| plain(*i)).is_ok()).count();
    println!("plain {}", returned);
}
