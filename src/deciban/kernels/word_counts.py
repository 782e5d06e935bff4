"""Words counted: as they come in texts, and as tables in CSR form, class by word."""

import numpy as np

from deciban.kernels.compiled import Array, compiled
from deciban.kernels.text_arrays import LabelledTexts
from deciban.util.sparse import SparseArrays


@compiled
def count_words(
    numbers: Array, bounds: Array, amounts: Array, texts: LabelledTexts, tally: Array, touched: Array, out: SparseArrays
) -> None:
    """The weights of texts added up for each of their words: class by class the numbers of its words, and their counts.

    The words of text i are numbers[bounds[i]] and so on, each as much as `amounts` has or, if that is empty, 1.
    out.indptr[c + 1] is where the words of class c end. There is room for each word in `tally` (zeros), which stays in
    the cache class by class, and in `touched`, which needs one place more.
    """
    order, labels, weights = texts
    counts, words, ends = out
    new, found = np.uint64(0), np.uint64(0)
    for k in range(order.size):
        row = order[k]
        weight = weights[row]
        for t in range(bounds[row], bounds[row + 1]):
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
def add_counts(mine: SparseArrays, theirs: SparseArrays, numbers: Array, place: Array, out: SparseArrays) -> None:
    """The sum of two tables, class by word; numbers[w] is what the first calls word w of the second.

    `place`, of each word among those of its class, is negative at first; there is room for the cells of both.
    """
    my_data, my_words, my_ends = mine
    their_data, their_words, their_ends = theirs
    data, words, ends = out
    at = 0
    for c in range(my_ends.size - 1):
        first = at
        for t in range(my_ends[c], my_ends[c + 1]):
            data[at], words[at] = my_data[t], my_words[t]
            place[np.uint64(my_words[t])] = at
            at += 1
        for t in range(their_ends[c], their_ends[c + 1]):
            number = numbers[np.uint64(their_words[t])]
            there = place[np.uint64(number)]
            if there >= first:
                data[np.uint64(there)] += their_data[t]
            else:
                data[at], words[at] = their_data[t], number
                at += 1
        ends[c + 1] = at


@compiled
def count_per_text(numbers: Array, bounds: Array, place: Array, out: SparseArrays) -> None:
    """How often each word is in each text, in CSR form; `place` of each word is -1 before and after."""
    data, indices, indptr = out
    count = 0
    for row in range(bounds.size - 1):
        first = count
        for k in range(bounds[row], bounds[row + 1]):
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
