// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming

// Aliases in the packages to which Spark 4.1 moved these classes. `StreamingShims` has the others.

private[streaming] trait RuntimeShims {
  val StreamingCheckpointConstants: org.apache.spark.sql.execution.streaming.StreamingCheckpointConstants.type =
    org.apache.spark.sql.execution.streaming.StreamingCheckpointConstants
}

package operators {
  package stateful {
    package object transformwithstate {
      type TransformWithStateOperatorProperties =
        org.apache.spark.sql.execution.streaming.TransformWithStateOperatorProperties
      type TransformWithStateVariableInfo = org.apache.spark.sql.execution.streaming.TransformWithStateVariableInfo
      val StateVariableType: org.apache.spark.sql.execution.streaming.StateVariableType.type =
        org.apache.spark.sql.execution.streaming.StateVariableType
      val TransformWithStateOperatorProperties
          : org.apache.spark.sql.execution.streaming.TransformWithStateOperatorProperties.type =
        org.apache.spark.sql.execution.streaming.TransformWithStateOperatorProperties
    }

    package transformwithstate {
      package object timers {
        val TimerStateUtils: org.apache.spark.sql.execution.streaming.TimerStateUtils.type =
          org.apache.spark.sql.execution.streaming.TimerStateUtils
      }
    }
  }
}
