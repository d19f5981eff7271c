// Enums, slices, methods and generics of Rust, for tests of what debug information tells.
#[derive(Clone, Copy)]
enum State {
    New,
    Paid = 5,
}

enum Shape {
    Empty,
    Circle(i32),
    Square { side: u16, name: &'static str },
}

struct Basket {
    total: i64,
    state: State,
}

impl Basket {
    #[inline(never)]
    fn add(&mut self, count: i32, what: &str) -> i64 {
        self.total += count as i64 * what.len() as i64;
        self.state = State::Paid;
        self.total
    }
}

#[inline(never)]
fn area(shape: &Shape) -> i32 {
    match shape {
        Shape::Empty => 0,
        Shape::Circle(radius) => radius * 3,
        Shape::Square { side, name } => (*side as i32) * (*side as i32) + name.len() as i32,
    }
}

#[inline(never)]
fn larger<T: PartialOrd + Copy>(one: T, other: T) -> T {
    if one > other { one } else { other }
}

#[inline(never)]
fn maybe(number: i32) -> Option<i32> {
    if number > 2 { Some(number * 2) } else { None }
}

// Discriminants in a niche: in the capacity of the String, in the null of the pointers.
#[inline(never)]
fn weigh(order: &Result<u32, String>, next: &Option<&u32>, nested: &Option<Result<u32, String>>) -> u32 {
    let first = match order { Ok(count) => *count, Err(reason) => reason.len() as u32 };
    let last = match nested { Some(Ok(count)) => *count, Some(Err(_)) => 1, None => 2 };
    first + last + next.copied().unwrap_or(0)
}

fn main() {
    let mut basket = Basket { total: 0, state: State::New };
    let total = basket.add(3, "pear") + basket.add(1, "apple");
    let shapes = [Shape::Empty, Shape::Circle(7), Shape::Square { side: 4, name: "box" }];
    let sum: i32 = shapes.iter().map(area).sum();
    println!("{} {} {} {:?} {}", total, sum, larger(3, 4), maybe(5), basket.state as i32 + larger(2i64, 1) as i32);
    println!("{:?}", maybe(1));
    let refused = || Err(String::from("out of pears"));
    println!("{}", weigh(&Ok(4), &Some(&7), &Some(refused())) + weigh(&refused(), &None, &None));
}
