native printf(const format[], ...);
native foo(x);
new glob[10] = {1,2,3,...};
public pv = 5;
stock const str[] = !"packed string";
fact(n) { return n < 2 ? 1 : n * fact(n-1); }
public entry1(a, b) { return a*b + fact(5); }
state_fn() <one> { return 1; }
state_fn() <two> { return 2; }
state_fn() <> { return 0; }
main()
{
    new s[20 char];
    s = !"hello";
    printf("x %d %s^n", glob[3], s);
    switch (glob[2]) {
       case 1: foo(3);
       case 2,3: foo(4);
       default: foo(5);
    }
    state two;
    for (new i = 0; i < 10; i++) { glob[i] = i*2; foo(glob[i]); }
    foo(state_fn());
    sleep 10;
    new f = 3;
    foo(f / 2 % 3);
    return fact(6);
}
