package org.apache.spark.sql.execution.streaming.state.dstl.files

import sparkdstl.log.read.RecoveryProgress

/** Which store the calling thread is loading. */
private[dstl] object CurrentLoad {
  private val loading = new ThreadLocal[RecoveryProgress#LoadingStore]

  def get: Option[RecoveryProgress#LoadingStore] = Option(loading.get)

  /** Runs `body`, which loads that version of the store. */
  def during[T](progress: RecoveryProgress, name: String, version: Long)(body: => T): T = {
    val store = progress.begin(name, version)
    loading.set(store)
    var isLoaded = false
    try {
      val result = body
      isLoaded = true
      result
    } finally {
      loading.remove()
      store.end(isLoaded)
    }
  }
}
