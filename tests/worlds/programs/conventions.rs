// Functions whose arguments and results have all kinds of types, as in conventions.cc.
#![allow(dead_code, unused_variables)]
use std::hint::black_box;

#[derive(Clone, Copy)] pub struct Three { a: u32, b: u32, c: u32 }
#[derive(Clone, Copy)] pub struct Pair { a: u32, b: u64 }
#[derive(Clone, Copy)] pub struct Small { a: u32, f: f32 }
pub enum Uneven { A(u32), B(u64), C }
pub enum Niche { A(u64, bool), B(u64) }
pub struct Holder { x: u64 }

macro_rules! take {
    ($name:ident, $type:ty) => {
        #[inline(never)] pub fn $name(t: $type, z: u32) -> u32 { black_box(&t); black_box(&z); z }
    };
}
macro_rules! give {
    ($name:ident, $type:ty, $i:ident, $value:expr) => {
        #[inline(never)] pub fn $name($i: u32) -> $type { black_box(&$i); $value }
    };
}
take!(a_three, Three);
take!(a_pair, Pair);
take!(a_small, Small);
take!(a_uneven, Uneven);
take!(a_niche, Niche);
take!(a_floats, [f32; 2]);
take!(a_shorts, [u16; 5]);
take!(a_large, [u64; 5]);
take!(a_text, &str);
take!(a_option, Option<u32>);
take!(a_tuple, (u8, u64));
take!(a_wide, u128);
#[inline(never)] pub fn a_unnamed(_: u32, z: u32) -> u32 { black_box(&z); z }
#[inline(never)] pub fn a_pattern((a, b): (u32, u32), z: u32) -> u32 { black_box(&a); black_box(&b); black_box(&z); z }
impl Holder {
    #[inline(never)] pub fn a_method(&self, y: u32, z: u32) -> u32 { black_box(self); black_box(&y); black_box(&z); z }
}
give!(r_three, Three, i, Three { a: i, b: i + 1, c: i + 2 });
give!(r_pair, Pair, i, Pair { a: i, b: 500 });
give!(r_small, Small, i, Small { a: i, f: 1.5 });
give!(r_uneven, Uneven, i, if i == 7 { Uneven::B(9) } else { Uneven::C });
give!(r_niche, Niche, i, if i == 7 { Niche::B(9) } else { Niche::A(1, true) });
give!(r_option, Option<u32>, i, if i == 7 { Some(i) } else { None });
give!(r_text, Option<String>, i, if i == 7 { Some("x".into()) } else { None });
give!(r_result, Result<usize, String>, i, if i == 7 { Ok(47) } else { Err("bad".into()) });
give!(r_tuple, (u8, u64), i, (1, i as u64));
give!(r_bytes, [u8; 3], i, [1, 2, i as u8]);
give!(r_shorts, [u16; 5], i, [1, 2, 3, 4, i as u16]);
give!(r_number, i32, i, i as i32 - 9);
give!(r_unused, u32, i, i + 1);
give!(r_constant, u32, i, 9);
give!(r_box, Box<u32>, i, Box::new(i));

fn main() {
    let i = black_box(7u32);
    a_three(Three { a: 31, b: 32, c: 33 }, 77); a_pair(Pair { a: 31, b: 32 }, 77); a_small(Small { a: 31, f: 1.5 }, 77);
    a_uneven(Uneven::B(9), 77); a_niche(Niche::B(9), 77); a_floats([1.0, 2.0], 77); a_shorts([1, 2, 3, 4, 5], 77);
    a_large([1, 2, 3, 4, 5], 77); a_text("hey", 77); a_option(Some(5), 77); a_tuple((1, 31), 77); a_wide(31, 77);
    a_unnamed(5, 77); a_pattern((5, 6), 77); Holder { x: 1 }.a_method(8, 77);
    black_box(r_three(i).b); black_box(r_pair(i)); black_box(r_small(i)); black_box(r_uneven(i)); black_box(r_niche(i));
    black_box(r_option(i)); black_box(r_text(i)); black_box(r_result(i)); black_box(r_tuple(i).1); black_box(r_bytes(i));
    black_box(r_shorts(i)); black_box(r_number(i)); black_box(r_constant(i)); black_box(r_box(i)); r_unused(i);
}
