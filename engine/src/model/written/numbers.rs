//! The numbers of an object or array that are kept as written, by their places.

use std::iter::Peekable;

/// The numbers of one object or array that are kept as written, in the order of their places.
#[derive(Debug, Clone, Default)]
pub struct Numbers(pub(super) Vec<(usize, Number)>);

/// A number as it was written, or the numbers inside the value at a place.
#[derive(Debug, Clone)]
pub(super) enum Number {
    Text(Box<str>),
    Inside(Numbers),
}

impl Numbers {
    /// Returns the text of the number at a place of the object or array itself.
    pub(in crate::model) fn text(&self, place: usize) -> Option<&str> {
        match self.at(place)? {
            Number::Text(text) => Some(text),
            Number::Inside(_) => None,
        }
    }

    fn at(&self, place: usize) -> Option<&Number> {
        let index = self.0.binary_search_by_key(&place, |(place, _)| *place).ok()?;
        self.0.get(index).map(|(_, number)| number)
    }

    /// Returns the size of the numbers in memory, in bytes.
    pub(in crate::model) fn size_bytes(&self) -> usize {
        let inside = self.0.iter().map(|(_, number)| match number {
            Number::Text(text) => text.len(),
            Number::Inside(numbers) => numbers.size_bytes(),
        });
        self.0.capacity() * size_of::<(usize, Number)>() + inside.sum::<usize>()
    }
}

pub(super) fn inside(number: Option<&Number>) -> Option<&Numbers> {
    match number {
        Some(Number::Inside(numbers)) => Some(numbers),
        _ => None,
    }
}

/// Walks along the numbers of one object or array.
pub(super) struct Places<'n>(Peekable<std::slice::Iter<'n, (usize, Number)>>);

impl<'n> Places<'n> {
    pub(super) fn new(numbers: Option<&'n Numbers>) -> Places<'n> {
        Places(numbers.map_or_else(Default::default, |numbers| numbers.0.iter()).peekable())
    }

    pub(super) fn inside(number: Option<&'n Number>) -> Places<'n> {
        Places::new(inside(number))
    }

    /// Returns the number at a place. Each call must pass a later place than the call before.
    pub(super) fn next(&mut self, place: usize) -> Option<&'n Number> {
        self.0.next_if(|(next, _)| *next == place).map(|(_, number)| number)
    }
}
