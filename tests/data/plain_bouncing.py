"""The rules of bouncing video in plain loops, as a reference for the fast implementation."""

import hashlib
import math


def philox(counter, key):
    """Philox4x32-10 with Python integers."""
    counter, key = list(counter), list(key)
    for _ in range(10):
        high0, low0 = divmod(0xD2511F53 * counter[0], 2**32)
        high1, low1 = divmod(0xCD9E8D57 * counter[2], 2**32)
        counter = [high1 ^ counter[1] ^ key[0], low1, high0 ^ counter[3] ^ key[1], low0]
        key = [(key[0] + 0x9E3779B9) % 2**32, (key[1] + 0xBB67AE85) % 2**32]
    return counter


def corner_path(x, y, angle, length, speed, room):
    """The upper-left corner (row, column) in each frame of an object that starts at (x, y) in the unit square."""
    step_x, step_y = speed * math.cos(angle), speed * math.sin(angle)
    path = []
    for _ in range(length):
        x += step_x
        y += step_y
        if x <= 0:
            x, step_x = 0, -step_x
        if x >= 1:
            x, step_x = 1, -step_x
        if y <= 0:
            y, step_y = 0, -step_y
        if y >= 1:
            y, step_y = 1, -step_y
        path.append((int(y * room), int(x * room)))
    return path


def video(pixels, index, *, seed, stream, objects, canvas, length, speed):
    """The frames of one sequence as nested lists."""
    digest = hashlib.sha256(f"bouncing/{stream}/{seed}".encode()).digest()
    key = [int.from_bytes(digest[:4], "little"), int.from_bytes(digest[4:8], "little")]
    side = len(pixels[0])
    frames = [[[0] * canvas for _ in range(canvas)] for _ in range(length)]
    for k in range(objects):
        words = philox([index % 2**32, index // 2**32, k, 0], key)
        image = pixels[words[0] * len(pixels) // 2**32]
        y, x, turn = ((word + 0.5) / 2**32 for word in words[1:])
        for frame, (top, left) in zip(
            frames, corner_path(x, y, 2 * math.pi * turn, length, speed, canvas - side), strict=True
        ):
            for row in range(side):
                for column in range(side):
                    pixels_of_row = frame[top + row]
                    pixels_of_row[left + column] = max(pixels_of_row[left + column], int(image[row][column]))
    return frames
