# AWS IoT Core as the robots' broker, and the queue that its rules fill. Policies and rules are those of infra/mqtt/brokeradmin/awsiot, whose tests keep
# these files; the account and region in them are replaced.
locals {
  awsiot = "${path.module}/../../mqtt/brokeradmin/awsiot/testdata"
  rules  = jsondecode(file("${local.awsiot}/rules.json"))
}

resource "aws_iot_policy" "thing" {
  name   = "${var.name}-thing"
  policy = replace(file("${local.awsiot}/thing-policy.json"), "arn:aws:iot:eu-central-1:123456789012", local.iot)
}

resource "aws_iot_policy" "service" {
  name   = "${var.name}-service"
  policy = replace(file("${local.awsiot}/service-policy.json"), "arn:aws:iot:eu-central-1:123456789012", local.iot)
}

resource "aws_sqs_queue" "dead" {
  name                      = "${var.name}-uplink-dead"
  message_retention_seconds = 1209600
  sqs_managed_sse_enabled   = true
}

# A message that no kenneld took for an hour: its robot has sent it again long since. The limit of receives is below uplink.sqs.max_receives.
resource "aws_sqs_queue" "uplink" {
  name                       = "${var.name}-uplink"
  message_retention_seconds  = 3600
  visibility_timeout_seconds = 30
  receive_wait_time_seconds  = 20
  sqs_managed_sse_enabled    = true
  redrive_policy             = jsonencode({ deadLetterTargetArn = aws_sqs_queue.dead.arn, maxReceiveCount = 15 })
}

data "aws_iam_policy_document" "iot_may_be" {
  statement {
    actions = ["sts:AssumeRole"]
    principals {
      type        = "Service"
      identifiers = ["iot.amazonaws.com"]
    }
    condition {
      test     = "StringEquals"
      variable = "aws:SourceAccount"
      values   = [local.account]
    }
  }
}

data "aws_iam_policy_document" "rule" {
  statement {
    actions   = ["sqs:SendMessage"]
    resources = [aws_sqs_queue.uplink.arn]
  }
}

resource "aws_iam_role" "rule" {
  name               = "${var.name}-uplink"
  assume_role_policy = data.aws_iam_policy_document.iot_may_be.json
}

resource "aws_iam_role_policy" "rule" {
  name   = "uplink"
  role   = aws_iam_role.rule.id
  policy = data.aws_iam_policy_document.rule.json
}

resource "aws_iot_topic_rule" "uplink" {
  count       = length(local.rules)
  name        = replace("${var.name}_uplink_${count.index + 1}", "-", "_")
  description = local.rules[count.index].description
  enabled     = true
  sql         = local.rules[count.index].sql
  sql_version = local.rules[count.index].awsIotSqlVersion
  sqs {
    queue_url  = aws_sqs_queue.uplink.url
    role_arn   = aws_iam_role.rule.arn
    use_base64 = false
  }
}
