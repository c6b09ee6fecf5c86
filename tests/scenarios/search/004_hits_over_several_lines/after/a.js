call(
  a,
  b
);
call(c);
