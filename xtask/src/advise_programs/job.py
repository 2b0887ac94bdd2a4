# A data job: columns of numbers, summed again and again.
from array import array

columns = [array("d", bytes(16 << 20)) for _ in range(5)]
while True:
    for column in columns:
        sum(column[::64])
