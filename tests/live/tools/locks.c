// A thread holds a mutex for 200 ms while another one waits for it; a third waits for a condition variable, and a fourth
// for a rwlock. Two threads lock two other mutexes in opposite orders, one after the other.
#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t busy = PTHREAD_MUTEX_INITIALIZER, first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t third = PTHREAD_MUTEX_INITIALIZER, sleepy = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;
static int is_held[2];

__attribute__((noinline)) void hold_long(void) {
  pthread_mutex_lock(&busy);
  __atomic_store_n(&is_held[0], 1, __ATOMIC_SEQ_CST);
  usleep(200000);
  pthread_mutex_unlock(&busy);
}

__attribute__((noinline)) void wait_long(void) {
  while (!__atomic_load_n(&is_held[0], __ATOMIC_SEQ_CST)) usleep(100);
  pthread_mutex_lock(&busy);
  pthread_mutex_unlock(&busy);
}

__attribute__((noinline)) void write_table(void) {
  pthread_rwlock_wrlock(&table);
  __atomic_store_n(&is_held[1], 1, __ATOMIC_SEQ_CST);
  usleep(200000);
  pthread_rwlock_unlock(&table);
}

__attribute__((noinline)) void read_table(void) {
  while (!__atomic_load_n(&is_held[1], __ATOMIC_SEQ_CST)) usleep(100);
  pthread_rwlock_rdlock(&table);
  pthread_rwlock_unlock(&table);
}

__attribute__((noinline)) void sleep_in_condition(void) {
  struct timespec until = {1, 0};  // long ago
  pthread_mutex_lock(&sleepy);
  pthread_cond_timedwait(&never, &sleepy, &until);
  pthread_mutex_unlock(&sleepy);
}

__attribute__((noinline)) void forwards(void) {
  pthread_mutex_lock(&first);
  pthread_mutex_lock(&second);
  pthread_mutex_unlock(&first);
  pthread_mutex_lock(&third);
  pthread_mutex_unlock(&second);
  pthread_mutex_unlock(&third);
}

__attribute__((noinline)) void backwards(void) {
  pthread_mutex_lock(&second);
  pthread_mutex_lock(&first);
  pthread_mutex_unlock(&first);
  pthread_mutex_unlock(&second);
  pthread_mutex_lock(&first);  // third is free: no circle
  pthread_mutex_lock(&third);
  pthread_mutex_unlock(&third);
  pthread_mutex_unlock(&first);
}

static void* run(void* function) {
  ((void (*)(void))function)();
  return NULL;
}

int main(void) {
  void (*both[][2])(void) = {{hold_long, wait_long}, {write_table, read_table}};
  pthread_t threads[2];
  for (int pair = 0; pair < 2; pair++) {
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, run, (void*)both[pair][i]);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  }
  void (*alone[])(void) = {sleep_in_condition, forwards, backwards};
  for (int i = 0; i < 3; i++) {
    pthread_create(&threads[0], NULL, run, (void*)alone[i]);
    pthread_join(threads[0], NULL);
  }
  return 0;
}
