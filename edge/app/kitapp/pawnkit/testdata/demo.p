/* A script for tests. The reference compiler 3.3.4065 made demo.amx with -O2 -d1 -C- -V4096 -S200, demo_debug.amx with -O0 -d2 -C+ -S200. */
native printf(const format[], ...);
native numargs();
native getarg(arg, index=0);
native setarg(arg, index=0, value);
native heapspace();
native funcidx(const name[]);
native beep(a, b, c);

new total;

sum(...)
{
    new t = 0;
    for (new i = 0; i < numargs(); i++) {
        t += getarg(i);
        setarg(i, 0, t);
    }
    return t;
}

inside() <a> return 1;
inside() <b> return 2;
entry() <b> printf("in b\n");

forward @count(n);
public @count(n)
    return total += n;

forward @open();
public @open()
    printf("no end of line");

forward @element(i);
public @element(i)
{
    new list[5] = { 1, 2, 3, 4, 5 };
    return list[i];
}

forward @ratio(a, b);
public @ratio(a, b)
    return a / b;

forward @check(x);
public @check(x)
{
    assert x > 3;
    exit x;
}

forward @nap(n);
public @nap(n)
{
    while (n > 0) {
        sleep n--;
    }
    return 99;
}

forward @inB();
public @inB()
    return inside();

forward @deep(n);
public @deep(n)
{
    new room[20];
    room[n % 20] = n;
    return @deep(n + 1) + room[0];
}

forward @bad();
public @bad()
{
    new a = 12;
    printf("%d %d\n", a);
}

main()
{
    new packed[10 char];
    packed = !"pack me";
    packed{4} = '-';
    new text[10] = "unpacked";
    printf("%s|%s|%c|%x 100%%\n", packed, text, packed{0}, 0xBEEF);
    new p = 1, q = 2, r = 3;
    new s = sum(p, q, r);
    printf("%d %d %d %d\n", s, p, q, r);
    beep(1, -2, 0x1FF & 255);
    switch (s) {
        case 6: total = 0;
        case 1 .. 5: total = 1;
        default: total = 2;
    }
    printf("%d %d %d\n", funcidx("@bad"), funcidx("none"), heapspace() > 100);
    sleep 5;
    state b;
    return inside();
}
