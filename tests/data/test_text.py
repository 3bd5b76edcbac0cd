"""Text: every symbol of every line once, masked past the end of a line, and never changed."""

import gzip

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ptncn.data import DataError, Text, load_text, python_reference

LINES = ["the cat sat", "on", "a mat", "and then it slept for a while", "end"] * 7


def read(text, batch):
    """The lines of a batch, without masked symbols."""
    x, mask = batch
    return [text.decode(x[mask[:, row], row]) for row in range(x.shape[1])]


class TestLines:
    def test_blanks_around_lines_and_empty_lines_are_left_out(self):
        text = Text("t", [" two words ", "", "   ", "\tx\r"], space="_")
        assert [text.decode(text[i]) for i in range(len(text))] == ["two_words", "x"]
        assert text.vocabulary == "_dorstwx"

    def test_observations_are_one_hot_in_the_order_of_the_vocabulary(self):
        x, mask = Text("t", ["ba", "c"], vocabulary="cba").batch([0, 1])
        assert x.tolist() == [[[0, 1, 0], [1, 0, 0]], [[0, 0, 1], [0, 0, 0]]]
        assert mask.tolist() == [[True, True], [True, False]]
        assert x.dtype == torch.float32

    @given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip), min_size=1))
    def test_any_text_survives_encoding_and_decoding(self, lines):
        text = Text("t", lines)
        assert [text.decode(text[i]) for i in range(len(text))] == [line.strip() for line in lines]

    def test_an_item_is_one_sequence_without_padding(self):
        text = Text("t", LINES)
        assert text[1].shape == (2, text.input_size)
        assert text.lengths[:5].tolist() == [11, 2, 5, 29, 3]


class TestBatches:
    @pytest.mark.parametrize("batch_size", [1, 4, 100])
    @pytest.mark.parametrize("bucket", [1, 2, 50])
    @pytest.mark.parametrize("shuffle_seed", [None, 0])
    def test_every_line_comes_once(self, batch_size, bucket, shuffle_seed):
        text = Text("t", [f"{i} {line}" for i, line in enumerate(LINES)])
        seen = [
            line
            for batch in text.batches(batch_size, bucket=bucket, shuffle_seed=shuffle_seed)
            for line in read(text, batch)
        ]
        assert sorted(seen) == sorted(f"{i} {line}" for i, line in enumerate(LINES))

    def test_past_the_end_of_a_line_observations_are_zero(self):
        for x, mask in Text("t", LINES).batches(8):
            assert torch.equal(x.sum(-1) == 1, mask)

    def test_buckets_group_lines_of_similar_length(self):
        lines = ["x" * (1 + i * 37 % 100) for i in range(1_000)]
        text = Text("t", lines)
        share = {
            bucket: np.mean([mask.float().mean().item() for _, mask in text.batches(10, shuffle_seed=0, bucket=bucket)])
            for bucket in (1, 50)
        }
        assert share[50] > 0.95 > 0.7 > share[1]

    def test_without_shuffling_a_bucket_of_one_batch_keeps_the_order(self):
        text = Text("t", LINES)
        assert [line for batch in text.batches(4, bucket=1) for line in read(text, batch)] == LINES

    def test_epochs_differ_and_can_be_repeated_and_resumed(self):
        text = Text("t", LINES)
        first, again, other = (
            [read(text, batch) for batch in text.batches(4, shuffle_seed=1, epoch=epoch)] for epoch in (0, 0, 1)
        )
        assert first == again != other
        assert [read(text, batch) for batch in text.batches(4, shuffle_seed=1, start=3)] == first[3:]

    def test_reading_the_text_never_changes_it(self):
        text = Text("t", LINES)
        before, size = text._digest(), len(text)
        for epoch in range(3):
            for x, mask in text.batches(4, shuffle_seed=0, epoch=epoch):
                x.fill_(7)
                mask.fill_(False)
        assert (text._digest(), len(text)) == (before, size)
        assert [text.decode(text[i]) for i in range(len(text))] == LINES

    def test_arguments_are_checked(self):
        text = Text("t", LINES)
        for options in ({"batch_size": 0}, {"batch_size": 2, "bucket": 0}, {"batch_size": 2, "start": -1}):
            with pytest.raises(ValueError, match="expected an integer"):
                text.batches(**options)


class TestStream:
    def test_it_is_the_whole_text_with_a_space_between_lines(self):
        text = Text("t", LINES, space="_")
        chunks = list(text.stream(10))
        assert all(mask is None for _, mask in chunks)
        assert [len(x) for x, _ in chunks[:-1]] == [10] * (len(chunks) - 1)
        assert "".join(text.decode(x[:, 0]) for x, _ in chunks) == "_".join(LINES).replace(" ", "_")

    def test_lanes_are_the_pieces_of_the_text_side_by_side(self):
        text = Text("t", ["abcdefgh"])
        x = next(text.stream(100, lanes=3)).x
        assert [text.decode(x[:, lane]) for lane in range(3)] == ["ab", "cd", "ef"]

    def test_it_continues_from_any_step(self):
        text = Text("t", LINES)
        whole = torch.cat([x for x, _ in text.stream(7)])
        rest = torch.cat([x for x, _ in text.stream(13, start=26)])
        assert torch.equal(whole[26:], rest)


class TestFiles:
    def test_a_text_file_is_read_plain_or_packed(self, tmp_path):
        content = b" to be \n\nor not\r\n"
        (tmp_path / "plain.txt").write_bytes(content)
        (tmp_path / "packed.gz").write_bytes(gzip.compress(content))
        for name in ("plain.txt", "packed.gz"):
            text = load_text(tmp_path / name)
            assert [text.decode(text[i]) for i in range(len(text))] == ["to be", "or not"]

    def test_a_symbol_outside_the_vocabulary_is_named_with_file_and_line(self, tmp_path):
        path = tmp_path / "mine.txt"
        path.write_text("abc\n\nab\nabé\n", encoding="utf-8")
        with pytest.raises(DataError, match=r"mine\.txt, line 4: the symbol 'é' is not in the vocabulary of 3 symbols"):
            load_text(path, vocabulary="abc")
        assert path.read_text(encoding="utf-8") == "abc\n\nab\nabé\n"

    def test_bytes_that_are_not_text_are_named_with_file_and_line(self, tmp_path):
        (tmp_path / "bad.txt").write_bytes(b"ok\nfine\n\xff\n")
        with pytest.raises(DataError, match=r"bad\.txt, line 3: byte 0xff is not UTF-8"):
            load_text(tmp_path / "bad.txt")

    def test_an_empty_file_and_a_missing_file_are_named(self, tmp_path):
        (tmp_path / "empty.txt").write_text("\n \n")
        with pytest.raises(DataError, match=r"empty\.txt: expected at least one line"):
            load_text(tmp_path / "empty.txt")
        with pytest.raises(DataError, match=r"gone\.txt: no such file"):
            load_text(tmp_path / "gone.txt")

    def test_a_vocabulary_with_a_symbol_twice_is_refused(self):
        with pytest.raises(ValueError, match="expected each symbol once"):
            Text("t", ["a"], vocabulary="aba")

    def test_texts_are_equal_if_their_hashes_are(self):
        texts = [
            Text("a", ["ab", "c"]),
            Text("b", ["ab", "c"]),
            Text("a", ["a", "bc"]),
            Text("a", ["ab", "c"], vocabulary="cab"),
        ]
        hashes = [text.sha256 for text in texts]
        assert hashes[0] == hashes[1]
        assert len(set(hashes)) == 3


class TestReference:
    def test_the_language_reference_has_three_splits_without_a_common_line(self):
        lines = []
        for split in ("train", "valid", "test"):
            text = python_reference(split)
            lines.append({text.decode(text[i]) for i in range(len(text))})
            assert text.input_size == 95
            assert text.lengths.sum() > 10_000
        assert len(set.union(*lines)) == sum(map(len, lines))
        assert 'The "assert" statement' in lines[0]

    def test_another_split_is_refused(self):
        with pytest.raises(ValueError, match="choose one of: train, valid, test"):
            python_reference("dev")
