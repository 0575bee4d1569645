-- Once, when the cluster is made: kenneld's database, whose owner is nobody's superuser. The password is read by psql from its file, so
-- that it appears on no command line.
\set password `cat /run/kennel/kennel-password`
CREATE ROLE kennel LOGIN PASSWORD :'password';
CREATE DATABASE kennel OWNER kennel;
