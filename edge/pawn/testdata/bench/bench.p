/* Loops for benchmarks. Every function returns a number that depends on all of its work. */

fib(n)
    return n < 2 ? n : fib(n - 1) + fib(n - 2);

forward @fib(n);
public @fib(n)
    return fib(n);

new flags[8191];

forward @sieve(rounds);
public @sieve(rounds)
{
    new count;
    while (rounds-- > 0) {
        count = 0;
        for (new i = 0; i < 8191; i++)
            flags[i] = 1;
        for (new i = 0; i < 8191; i++) {
            if (flags[i]) {
                new prime = i + i + 3;
                for (new k = i + prime; k < 8191; k += prime)
                    flags[k] = 0;
                count++;
            }
        }
    }
    return count;
}

new left[32][32], right[32][32], product[32][32];

forward @matmul(rounds);
public @matmul(rounds)
{
    for (new i = 0; i < 32; i++) {
        for (new j = 0; j < 32; j++) {
            left[i][j] = i + j;
            right[i][j] = i - j;
        }
    }
    new trace = 0;
    while (rounds-- > 0) {
        for (new i = 0; i < 32; i++) {
            for (new j = 0; j < 32; j++) {
                new s = 0;
                for (new k = 0; k < 32; k++)
                    s += left[i][k] * right[k][j];
                product[i][j] = s;
            }
        }
        for (new i = 0; i < 32; i++)
            trace += product[i][0];
    }
    return trace;
}

forward @collatz(limit);
public @collatz(limit)
{
    new best = 0;
    for (new start = 1; start < limit; start++) {
        new n = start, steps = 0;
        while (n != 1) {
            n = (n & 1) ? 3 * n + 1 : n / 2;
            steps++;
        }
        if (steps > best)
            best = steps;
    }
    return best;
}
