#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the golden stores of this folder from the text of gridctl-store(5), with nothing of gridctl's: what a later
gridctl must go on reading. Run by hand when a version of the format is added; never to make a test pass.

    tests/data/store/make.py DIR
"""
import hashlib
import hmac
import os
import struct
import sys

SECRET = bytes(range(32))


def sbox_of():
    """The S-box of AES, by its definition: inverse in GF(2^8), then an affine map."""
    box, p, q = [0] * 256, 1, 1
    while True:
        p = p ^ (p << 1) & 255 ^ (0x1B if p & 0x80 else 0)
        for shift in (1, 2, 4):
            q = q ^ q << shift & 255
        q ^= 0x09 if q & 0x80 else 0
        rotated = [(q << n | q >> 8 - n) & 255 for n in (1, 2, 3, 4)]
        box[p] = q ^ rotated[0] ^ rotated[1] ^ rotated[2] ^ rotated[3] ^ 0x63
        if p == 1:
            box[0] = 0x63
            return box


SBOX = sbox_of()


def double(byte):
    return byte << 1 & 255 ^ (0x1B if byte & 0x80 else 0)


def expand_key(key):
    words, rcon = [list(key[i:i + 4]) for i in range(0, 32, 4)], 1
    for i in range(8, 60):
        word = list(words[i - 1])
        if i % 8 == 0:
            word = [SBOX[b] for b in word[1:] + word[:1]]
            word[0] ^= rcon
            rcon = double(rcon)
        elif i % 8 == 4:
            word = [SBOX[b] for b in word]
        words.append([a ^ b for a, b in zip(words[i - 8], word)])
    return [sum(words[i:i + 4], []) for i in range(0, 60, 4)]


def encrypt_block(keys, block):
    state = [a ^ b for a, b in zip(block, keys[0])]
    for number in range(1, 15):
        state = [SBOX[state[(i + 4 * (i % 4)) % 16]] for i in range(16)]
        if number < 14:
            mixed = []
            for column in range(0, 16, 4):
                a = state[column:column + 4]
                whole = a[0] ^ a[1] ^ a[2] ^ a[3]
                mixed += [a[i] ^ whole ^ double(a[i] ^ a[(i + 1) % 4]) for i in range(4)]
            state = mixed
        state = [a ^ b for a, b in zip(state, keys[number])]
    return bytes(state)


def ghash(h, blocks):
    total = 0
    for block in blocks:
        total ^= int.from_bytes(block, "big")
        product, value = 0, h
        for bit in range(127, -1, -1):
            if total >> bit & 1:
                product ^= value
            value = value >> 1 ^ (0xE1 << 120 if value & 1 else 0)
        total = product
    return total


def gcm(key, nonce, extra, plain):
    keys = expand_key(key)
    h = int.from_bytes(encrypt_block(keys, bytes(16)), "big")
    stream = b"".join(encrypt_block(keys, nonce + struct.pack(">I", n + 2)) for n in range((len(plain) + 15) // 16))
    sealed = bytes(a ^ b for a, b in zip(plain, stream))

    def padded(data):
        data += bytes(-len(data) % 16)
        return [data[i:i + 16] for i in range(0, len(data), 16)]
    tag = ghash(h, padded(extra) + padded(sealed) + [struct.pack(">QQ", len(extra) * 8, len(sealed) * 8)])
    tag ^= int.from_bytes(encrypt_block(keys, nonce + struct.pack(">I", 1)), "big")
    return sealed + tag.to_bytes(16, "big")


def mac(key, message):
    return hmac.new(key, message, hashlib.sha256).digest()


def blob_key(storage_id):
    return mac(mac(bytes(32), SECRET), b"gridctl/chunk/1" + storage_id + b"\1")


def repeated(byte, count):
    """A zstd frame (RFC 8878) of one block that repeats a byte: single segment, content size of two bytes."""
    return struct.pack("<IBH", 0xFD2FB528, 0x60, count - 256) + struct.pack("<I", count << 3 | 1 << 1 | 1)[:3] + bytes([byte])


def rotated_planes(elements):
    turned = [(e << 1 | e >> 15) & 0xFFFF for e in elements]
    return bytes(e >> 8 for e in turned), bytes(e & 255 for e in turned)


def blobs():
    """(plain, codec, parameter, encoded) for each codec of version 1."""
    text = b"kept as it is"
    yield text, 0, 0, text
    yield b"a" * 1000, 1, 0, repeated(ord("a"), 1000)
    weights = [0x3C00 | n % 128 for n in range(600)]  # bf16 numbers of one exponent
    high, low = rotated_planes(weights)
    assert set(high) == {0x78}
    first = repeated(high[0], 600)
    planes = struct.pack(">BI", 1, len(first)) + first + struct.pack(">BI", 0, 600) + low
    yield struct.pack("<600H", *weights) + b"!", 2, 2, planes + b"!"


def pack(sealed):
    body, index = b"", b""
    key_id = mac(SECRET, b"gridctl/key-id/1")[:16] if sealed else bytes(16)
    count = 0
    for plain, codec, parameter, stored in blobs():
        name = hashlib.sha256(plain).digest()
        if sealed:
            name = mac(SECRET, name)
            nonce = bytes([count]) * 12
            stored = nonce + gcm(blob_key(name), nonce, b"gridctl/chunk/1" + name + struct.pack(">I", len(plain)), stored)
        index += name + struct.pack(">QIIBBH12x", 16 + len(body), len(stored), len(plain), codec, 1 if sealed else 0,
                                    parameter)
        body += stored
        count += 1
    header = struct.pack(">8sHH4x", b"GRIDPACK", 1, 3 if sealed else 1)
    trailer = struct.pack(">QI4x16s24x", 16 + len(body), count, key_id)
    digest = hashlib.sha256(header + index + trailer).digest()
    return digest.hex() + ".pack", header + body + index + trailer + digest + b"GRIDPEND"


def main():
    key_id = mac(SECRET, b"gridctl/key-id/1")[:16].hex()
    for name, sealed in (("1-open", False), ("1-sealed", True)):
        folder = os.path.join(sys.argv[1], name)
        os.makedirs(os.path.join(folder, "packs"), exist_ok=True)
        with open(os.path.join(folder, "format"), "w", encoding="ascii") as file:
            file.write("gridctl-store 1\n" + (f"Key {key_id}\n" if sealed else ""))
        file_name, content = pack(sealed)
        with open(os.path.join(folder, "packs", file_name), "wb") as file:
            file.write(content)
    with open(os.path.join(sys.argv[1], "1.key"), "w", encoding="ascii") as file:
        file.write(f"gridctl-key 1\nid {key_id}\nsecret {SECRET.hex()}\n")


if __name__ == "__main__":
    main()
