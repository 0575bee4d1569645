# Database, objects and their key.
resource "aws_kms_key" "data" {
  description             = "Kennel: database and objects of ${var.name}"
  enable_key_rotation     = true
  deletion_window_in_days = 30
}

resource "aws_s3_bucket" "objects" {
  bucket = var.bucket
}

resource "aws_s3_bucket_public_access_block" "objects" {
  bucket                  = aws_s3_bucket.objects.id
  block_public_acls       = true
  block_public_policy     = true
  ignore_public_acls      = true
  restrict_public_buckets = true
}

resource "aws_s3_bucket_server_side_encryption_configuration" "objects" {
  bucket = aws_s3_bucket.objects.id
  rule {
    bucket_key_enabled = true
    apply_server_side_encryption_by_default {
      sse_algorithm     = "aws:kms"
      kms_master_key_id = aws_kms_key.data.arn
    }
  }
}

# kenneld deletes what is too old; this is for uploads that were never finished.
resource "aws_s3_bucket_lifecycle_configuration" "objects" {
  bucket = aws_s3_bucket.objects.id
  rule {
    id     = "unfinished"
    status = "Enabled"
    filter {}
    abort_incomplete_multipart_upload {
      days_after_initiation = 2
    }
  }
}

data "aws_iam_policy_document" "tls_only" {
  statement {
    sid       = "RefusePlainHTTP"
    effect    = "Deny"
    actions   = ["s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:ListBucket"]
    resources = [aws_s3_bucket.objects.arn, "${aws_s3_bucket.objects.arn}/*"]
    principals {
      type        = "AWS"
      identifiers = ["*"]
    }
    condition {
      test     = "Bool"
      variable = "aws:SecureTransport"
      values   = ["false"]
    }
  }
}

resource "aws_s3_bucket_policy" "objects" {
  bucket = aws_s3_bucket.objects.id
  policy = data.aws_iam_policy_document.tls_only.json
}

resource "aws_security_group" "database" {
  name        = "${var.name}-database"
  description = "Kennel's database: kenneld alone"
  vpc_id      = var.vpc_id
}

resource "aws_vpc_security_group_ingress_rule" "database" {
  security_group_id            = aws_security_group.database.id
  referenced_security_group_id = var.kenneld_security_group_id
  ip_protocol                  = "tcp"
  from_port                    = 5432
  to_port                      = 5432
}

resource "aws_db_subnet_group" "database" {
  name       = var.name
  subnet_ids = var.subnet_ids
}

resource "aws_rds_cluster_parameter_group" "database" {
  name   = var.name
  family = "aurora-postgresql15"
  parameter {
    name  = "rds.force_ssl"
    value = "1"
  }
}

# The administrator's password is in AWS Secrets Manager and nowhere here. kenneld has an account of its own: see README.md.
resource "aws_rds_cluster" "database" {
  cluster_identifier              = var.name
  engine                          = "aurora-postgresql"
  engine_version                  = "15"
  database_name                   = "kennel"
  master_username                 = "administrator"
  manage_master_user_password     = true
  db_subnet_group_name            = aws_db_subnet_group.database.name
  db_cluster_parameter_group_name = aws_rds_cluster_parameter_group.database.name
  vpc_security_group_ids          = [aws_security_group.database.id]
  storage_encrypted               = true
  kms_key_id                      = aws_kms_key.data.arn
  backup_retention_period         = 14
  deletion_protection             = true
  skip_final_snapshot             = false
  final_snapshot_identifier       = "${var.name}-last"
}

# Two servers in two zones: the second takes over.
resource "aws_rds_cluster_instance" "database" {
  count              = 2
  identifier         = "${var.name}-${count.index + 1}"
  cluster_identifier = aws_rds_cluster.database.id
  engine             = aws_rds_cluster.database.engine
  instance_class     = var.database_class
}
