"""Words counted: as they come in texts, and as tables in CSR form, class by word."""

import numpy as np

from deciban.kernels.compiled import Array, compiled


@compiled
def count_words(
    numbers: Array, amounts: Array, firsts: Array, order: Array, labels: Array, weights: Array, tally: Array,
    touched: Array, words: Array, counts: Array, ends: Array,
) -> None:  # fmt: skip
    """The weights of texts added up for each of their words: class by class the numbers of its words, and their counts.

    The words of text i are numbers[firsts[i]] and so on, each as much as `amounts` has or, if that is empty, 1. `order`
    has the texts that count, class by class: the tally of one stays in the cache. ends[c + 1] is where the words of
    class c end. There is room for each word in `tally` (zeros) and `touched`, which needs one place more.
    """
    new, found = np.uint64(0), np.uint64(0)
    for k in range(order.size):
        row = order[k]
        weight = weights[row]
        for t in range(firsts[row], firsts[row + 1]):
            number = np.uint64(numbers[t])
            before = tally[number]
            tally[number] = before + (weight if amounts.size == 0 else weight * amounts[t])
            touched[new] = numbers[t]
            new += np.uint64((before == 0.0) & (tally[number] > 0.0))  # a product may be too small to be anything
        if k + 1 == order.size or labels[order[k + 1]] != labels[row]:
            for t in range(new):
                number = np.uint64(touched[t])
                words[found], counts[found] = touched[t], tally[number]
                tally[number] = 0.0
                found += np.uint64(1)
            new = np.uint64(0)
            ends[labels[row] + 1] = found


@compiled
def add_counts(
    a_data: Array, a_words: Array, a_ends: Array, b_data: Array, b_words: Array, b_ends: Array, numbers: Array,
    place: Array, data: Array, words: Array, ends: Array,
) -> None:  # fmt: skip
    """The sum of two tables, class by word; numbers[w] is what the first calls word w of the second.

    `place`, of each word among those of its class, is negative at first; there is room for the cells of both.
    """
    at = 0
    for c in range(a_ends.size - 1):
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


@compiled
def gather_numbers(numbers: Array, begins: Array, place: Array, data: Array, indices: Array, indptr: Array) -> None:
    """The rows in CSR form: how often each word is in each text; `place` of each word is -1 before and after."""
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
