// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.runtime

import java.lang.reflect.Field

/** A private field of a class of Spark that has no accessor. */
private[dstl] object PrivateField {
  def apply(of: Class[_], name: String): Field = {
    val field = of.getDeclaredField(name)
    field.setAccessible(true)
    field
  }
}
