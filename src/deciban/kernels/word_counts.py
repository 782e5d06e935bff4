"""Words counted: as they come in texts, and as tables in CSR form, class by word or word by class."""

from typing import Any

import numpy as np

from deciban.kernels.compiled import Array, compiled
from deciban.kernels.words import longer


@compiled
def add_text(
    numbers: Array, amounts: Any, first: int, last: int, weight: float, tally: Array, touched: Array, new: int
) -> Any:
    """Add the words of a text to the tally of its class and, if they are new there, to those that it has."""
    at = np.uint64(new)
    for t in range(first, last):
        number = np.uint64(numbers[t])
        before = tally[number]
        tally[number] = before + (weight if amounts is None else weight * amounts[t])
        touched[at] = numbers[t]
        at += np.uint64((before == 0.0) & (tally[number] > 0.0))  # a product may be too small to be anything
    return np.int64(at)


@compiled
def end_class(
    tally: Array, touched: Array, new: int, words: Array, counts: Array, found: int
) -> tuple[Array, Array, int]:
    """Move the tally of a class to the end of the lists of words and counts."""
    if found + new > counts.size:
        words, counts = longer(words, found, found + new), longer(counts, found, found + new)
    for t in range(new):
        number = np.uint64(touched[t])
        words[found + t], counts[found + t] = touched[t], tally[number]
        tally[number] = 0.0
    return words, counts, found + new


@compiled
def count_words(
    numbers: Array, amounts: Any, firsts: Array, order: Array, labels: Array, weights: Array, known: int, classes: int
) -> tuple[Array, Array, Array]:
    """The weights of texts added up for each of their words: class by class the numbers of its words, and their counts.

    The words of text i are numbers[firsts[i]] and so on, each as much as `amounts` has or, if that is None, 1. `order`
    has the texts that count, class by class: the tally of one stays in the cache.
    """
    tally, touched = np.zeros(known), np.empty(known + 1, dtype=np.int32)
    words, counts = np.empty(2 * known + 64, dtype=np.int32), np.empty(2 * known + 64)
    ends = np.zeros(classes + 1, dtype=np.int64)
    new, found = 0, 0
    for k in range(order.size):
        row = order[k]
        new = add_text(numbers, amounts, firsts[row], firsts[row + 1], weights[row], tally, touched, new)
        if k + 1 == order.size or labels[order[k + 1]] != labels[row]:
            words, counts, found = end_class(tally, touched, new, words, counts, found)
            new = 0
            ends[labels[row] + 1 :] = found
    return words[:found], counts[:found], ends


@compiled
def transposed(data: Array, indices: Array, indptr: Array, order: Array, width: int) -> tuple[Array, Array, Array]:
    """A table in CSR form with so many columns as rows of some of them, in this order."""
    place = np.full(width, -1, dtype=np.int32)
    for row in range(order.size):
        place[order[row]] = row
    ends = np.zeros(order.size + 2, dtype=np.int64)
    for t in range(indptr[0], indptr[-1]):
        ends[place[np.uint64(indices[t])] + 2] += place[np.uint64(indices[t])] >= 0
    for row in range(order.size):
        ends[row + 2] += ends[row + 1]
    found, columns = np.empty(ends[-1]), np.empty(ends[-1], dtype=np.int32)
    for c in range(indptr.size - 1):
        for t in range(indptr[c], indptr[c + 1]):
            row = place[np.uint64(indices[t])]
            if row >= 0:
                at = np.uint64(ends[np.uint64(row + 1)])
                found[at], columns[at] = data[t], c
                ends[np.uint64(row + 1)] += 1
    return found, columns, ends[:-1].copy()


@compiled
def column_sums(data: Array, indices: Array, indptr: Array, width: int) -> Array:
    """The sums of the columns of a table in CSR form."""
    sums = np.zeros(width)
    for t in range(indptr[0], indptr[-1]):
        sums[np.uint64(indices[t])] += data[t]
    return sums


@compiled
def add_counts(
    a_data: Array, a_words: Array, a_ends: Array, b_data: Array, b_words: Array, b_ends: Array, numbers: Array,
    known: int,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """The sum of two tables, class by word; numbers[w] is what the first calls word w of the second."""
    classes = a_ends.size - 1
    size = a_data.size + b_data.size
    data, words, ends = np.empty(size), np.empty(size, dtype=np.int32), np.zeros(classes + 1, dtype=np.int64)
    place = np.full(known, -1, dtype=np.int64)  # of a word among those of its class, if it is not before them
    at = 0
    for c in range(classes):
        first = at
        for t in range(a_ends[c], a_ends[c + 1]):
            data[at], words[at] = a_data[t], a_words[t]
            place[np.uint64(a_words[t])] = at
            at += 1
        for t in range(b_ends[c], b_ends[c + 1]):
            number = numbers[np.uint64(b_words[t])]
            there = place[np.uint64(number)]
            if there >= first:
                data[np.uint64(there)] += b_data[t]
            else:
                data[at], words[at] = b_data[t], number
                at += 1
        ends[c + 1] = at
    return data[:at], words[:at], ends


@compiled
def gather_numbers(numbers: Array, begins: Array, size: int) -> tuple[Array, Array, Array]:
    """The rows in CSR form: how often each word is in each text."""
    place = np.full(size, -1, dtype=np.int32)  # of a word among those of its text
    data = np.empty(numbers.size, dtype=np.float64)
    indices = np.empty(numbers.size, dtype=np.int32)
    indptr = np.zeros(begins.size, dtype=np.int64)
    count = 0
    for row in range(begins.size - 1):
        first = count
        for k in range(begins[row], begins[row + 1]):
            word = np.uint64(numbers[k])
            if place[word] < 0:
                place[word] = count - first
                indices[count] = word
                data[count] = 1.0
                count += 1
            else:
                data[first + place[word]] += 1.0
        for k in range(first, count):
            place[np.uint64(indices[k])] = -1
        indptr[row + 1] = count
    return data, indices, indptr
