// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.tools

import org.apache.spark.sql.execution.datasources.v2.state.StateSourceOptions
import org.apache.spark.sql.execution.datasources.v2.state.utils.SchemaUtil
import org.apache.spark.sql.types.StructType

/** The columns of Spark's readers of state. */
private[tools] object ReaderShims {

  def schema(options: StateSourceOptions, of: StoredTable): StructType =
    SchemaUtil.getSourceSchema(options, of.family.keySchema, of.family.valueSchema, of.variable, Some(of.family))
}
