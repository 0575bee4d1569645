# What kenneld may do, and nothing else.
data "aws_iam_policy_document" "kenneld" {
  statement {
    sid       = "Uplink"
    actions   = ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"]
    resources = [aws_sqs_queue.uplink.arn]
  }
  statement {
    sid       = "Objects"
    actions   = ["s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload"]
    resources = ["${aws_s3_bucket.objects.arn}/*"]
  }
  statement {
    sid       = "Bucket"
    actions   = ["s3:ListBucket"]
    resources = [aws_s3_bucket.objects.arn]
  }
  statement {
    sid       = "Key"
    actions   = ["kms:Decrypt", "kms:GenerateDataKey"]
    resources = [aws_kms_key.data.arn]
    condition {
      test     = "StringEquals"
      variable = "kms:ViaService"
      values   = ["s3.${local.region}.amazonaws.com"]
    }
  }
  statement {
    sid       = "Sessions"
    actions   = ["iot:DeleteConnection", "iot:GetConnection"]
    resources = ["${local.iot}:client/*"]
  }
  statement {
    sid       = "Things"
    actions   = ["iot:ListThingPrincipals"]
    resources = ["${local.iot}:thing/*"]
  }
  statement {
    sid       = "Certificates"
    actions   = ["iot:DescribeCertificate", "iot:UpdateCertificate"]
    resources = ["${local.iot}:cert/*"]
  }
}

resource "aws_iam_role_policy" "kenneld" {
  name   = var.name
  role   = var.kenneld_role_name
  policy = data.aws_iam_policy_document.kenneld.json
}
